package session

import (
	"strings"
	"testing"
)

// shown returns a view in short notation: the messages' words, and the summary in brackets.
func shown(v View) string {
	var out []string
	for _, item := range v.Items {
		if item.Index < 0 {
			out = append(out, "["+item.Summary+"]")
			continue
		}
		out = append(out, strings.Trim(string(item.Raw), `"`))
	}
	return strings.Join(out, " ")
}

// condensed returns a condensation of a history that forgets the positions from to to-1.
func condensed(h *History, seq, base uint64, from, to int, summary string) Condensation {
	c := Condensation{
		ID: CondensationID{Thread: "t", Seq: seq}, Prefix: to - 1, Hash: h.Chain[to-1],
		Forgotten: []Range{{From: from, To: to}}, Summary: summary, Offset: 2,
	}
	if base > 0 {
		c.Base = CondensationID{Thread: "t", Seq: base}
	}
	return c
}

func TestProject(t *testing.T) {
	messages := parseMessages("s u aX oX aY oY g u aZ oZ")
	h := NewHistory(Hash{}, messages)
	first := condensed(h, 10, 0, 2, 4, "one")
	second := condensed(h, 20, 10, 4, 7, "two")
	bare := condensed(h, 20, 10, 4, 7, "")

	f := func(name, want string, h *History, cs ...Condensation) {
		t.Helper()
		v := Project(h, cs)
		if got := shown(v); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
		if v.Identity() != (len(v.Applied) == 0) {
			t.Errorf("%s: identity is %v", name, v.Identity())
		}
	}
	f("nothing", "s u aX oX aY oY g u aZ oZ", h)
	f("one", "s u [one] aY oY g u aZ oZ", h, first)
	f("two: the newest summary stands for all", "s u [two] u aZ oZ", h, first, second)
	f("two, the newer without a summary", "s u [one] u aZ oZ", h, first, bare)
	f("its base is missing", "s u aX oX aY oY g u aZ oZ", h, second)
	f("two on one base: the first logged counts", "s u [two] u aZ oZ", h, first, second, condensed(h, 30, 10, 4, 6, "three"))
	f("a system message more, elsewhere", "s u [two] s u aZ oZ",
		NewHistory(Hash{}, insert(messages, 4, parseMessages("s")[0])), first, second)

	edited := append([]Message(nil), messages...)
	edited[5].Digest[9]++
	f("edited inside the second's prefix", "s u [one] aY oY g u aZ oZ", NewHistory(Hash{}, edited), first, second)
	edited = append([]Message(nil), messages...)
	edited[9].Digest[9]++
	f("edited after both", "s u [two] u aZ oZ", NewHistory(Hash{}, edited), first, second)

	f("ends before the prefix", "s u aX oX", NewHistory(Hash{}, messages[:4]), first)
	f("ends where its own last unit would be gone", "s u [one] aY oY g", NewHistory(Hash{}, messages[:7]), first, second)
	f("another scope", "s u aX oX aY oY g u aZ oZ", NewHistory(Hash{1}, messages), first)
}

func insert(messages []Message, at int, m Message) []Message {
	out := append([]Message(nil), messages[:at]...)
	return append(append(out, m), messages[at:]...)
}

func TestReasoningStaysBeforeTheFirstChange(t *testing.T) {
	messages := parseMessages("s u aX oX aY oY aZ oZ aW oW")
	for i := range messages {
		messages[i].Sealed = messages[i].Kind == Action
	}
	h := NewHistory(Hash{}, messages)
	f := func(name, want string, change func(c *Condensation), earlier ...Condensation) {
		t.Helper()
		c := condensed(h, 10, 0, 4, 6, "sum")
		c.Offset, c.Stripped = 4, 6
		change(&c)
		var stripped []string
		v := Project(h, append(earlier, c))
		for _, item := range v.Items {
			if item.Strip {
				stripped = append(stripped, strings.Trim(string(item.Raw), `"`))
			}
		}
		if got := strings.Join(stripped, " "); got != want {
			t.Errorf("%s: %s is stripped, want %s", name, got, want)
		}
	}
	f("behind the summary", "aZ", func(*Condensation) {})
	f("the summary stands before the first answer", "aX aZ", func(c *Condensation) { c.Offset = 2 })
	f("it stands before its result", "aZ", func(c *Condensation) { c.Offset = 3 })
	f("the summary stands at the beginning", "aX aZ", func(c *Condensation) { c.Offset = 1 })
	f("a trimmed result", "aZ", func(c *Condensation) { c.Trims = []Trim{{Pos: 3, Head: 1}} })
	added := Condensation{ID: CondensationID{Thread: "t", Seq: 5}, Prefix: 1, Hash: h.Chain[1], Summary: "text"}
	added.Added = 1
	f("a text was added to the first message before", "aZ", func(c *Condensation) { c.Base = added.ID }, added)
	added.Added = 4
	f("a hidden text moves to the summary", "aZ", func(c *Condensation) { c.Base = added.ID }, added)
	f("a hidden text moves to a user message", "aX aZ", func(c *Condensation) { c.Base, c.Summary = added.ID, "" }, added)
	f("the client has changed the first message since", "aX aZ", func(c *Condensation) { c.Changed = 1 })
	f("it has changed the second result since", "aZ", func(c *Condensation) { c.Changed = 3 })
}

// TestContinuedUnitsAreNotSplit: a call had no result when it was forgotten, but has one in another continuation of the prefix.
func TestContinuedUnitsAreNotSplit(t *testing.T) {
	made := NewHistory(Hash{}, parseMessages("u aXY oX u g u"))
	c := condensed(made, 10, 0, 2, 4, "sum")
	if got := shown(Project(made, []Condensation{c})); got != "u [sum] u g u" {
		t.Errorf("got %s", got)
	}
	other := NewHistory(Hash{}, parseMessages("u aXY oX oY u g u"))
	if got := shown(Project(other, []Condensation{c})); got != "u aXY oX oY u g u" {
		t.Errorf("got %s", got)
	}
}

// TestCallsAnsweredLateAreNotHidden: a condensation that hides a call does not apply once the call's result has arrived.
func TestCallsAnsweredLateAreNotHidden(t *testing.T) {
	for _, test := range []struct {
		made     string
		from, to int // forgotten
		now      string
		want     string
	}{
		{"u aX u g u", 2, 3, "u aX u g u g", "u [sum] u g u g"},
		{"u aX u g u", 2, 3, "u aX u g u oX", "u aX u g u oX"},
		{"u aX oX u g u", 3, 4, "u aX oX u g u", "u aX oX u g u"}, // the result without its call
		{"u aX u g u", 2, 5, "s u aX u s g u oX", "s u aX u s g u oX"},
		{"u aXY oX u g u", 2, 4, "u aXY oX u g u oY u", "u aXY oX u g u oY u"},
		{"u aX u oX g u", 2, 5, "u aX u oX g u g", "u [sum] g u g"},         // both forgotten
		{"u aX oX u g u", 2, 4, "u aX oX u g u oX", "u [sum] u g u oX"},     // a duplicate result
		{"u aX u g u", 2, 3, "u aX u g u aX oX u", "u [sum] u g u aX oX u"}, // the id now belongs to another call
		{"u aXS oX g<S u", 2, 4, "u aXS oX g<S u", "u aXS oX g<S u"},
		{"u aXS oX g<S u", 4, 5, "u aXS oX g<S u", "u aXS oX g<S u"},
		{"u aXS oX g<S u", 2, 5, "u aXS oX g<S u", "u [sum] u"},
	} {
		made, now := NewHistory(Hash{}, parseMessages(test.made)), NewHistory(Hash{}, parseMessages(test.now))
		if got := shown(Project(now, []Condensation{condensed(made, 10, 0, test.from, test.to, "sum")})); got != test.want {
			t.Errorf("%s, %d to %d forgotten, then %s:\ngot  %s\nwant %s", test.made, test.from, test.to, test.now, got, test.want)
		}
	}
}

func TestNewestUserMessageIsNotHidden(t *testing.T) {
	long := NewHistory(Hash{}, parseMessages("u aX oX u aY oY u"))
	c := condensed(long, 10, 0, 2, 7, "sum")
	if got := shown(Project(long, []Condensation{c})); got != "u [sum] u" {
		t.Errorf("got %s", got)
	}
	for _, other := range []string{"u aX oX u aY oY", "u aX oX u aY oY aZ oZ"} {
		if got := shown(Project(NewHistory(Hash{}, parseMessages(other)), []Condensation{c})); got != other {
			t.Errorf("got %s, want %s", got, other)
		}
	}
}

// TestRelayedMessagesCanBeHidden: the newest message by another agent may be hidden, unlike the user's newest message.
func TestRelayedMessagesCanBeHidden(t *testing.T) {
	h := NewHistory(Hash{}, parseMessages("u aX oX u aY oY"))
	c := condensed(h, 4, 0, 2, 4, "sum")
	c.Forgotten = []Range{{From: 4, To: 5}}
	if got := shown(Project(h, []Condensation{c})); strings.Contains(got, "sum") {
		t.Errorf("a user's message is hidden: %s", got)
	}
	h.Messages[3].Relayed = true
	if got := shown(Project(h, []Condensation{c})); !strings.Contains(got, "sum") {
		t.Errorf("a relayed message is not hidden: %s", got)
	}
}
