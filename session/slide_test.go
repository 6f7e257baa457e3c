package session_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestASlidingWindowKeepsItsCondensations: if a client sends only its newest messages, and perhaps the first one, its condensations apply
// to the hidden messages that it still sends. If its answers left no traces before, the condensations are lost once, with the first message
// that it leaves out.
func TestASlidingWindowKeepsItsCondensations(t *testing.T) {
	const window, most, kept = 24, 16, 6 // messages that the client sends, that a view may have, and that a condensation does not hide
	for name, client := range map[string]struct {
		key, head    string // sent with each request, outside of the window
		answer, next string
		results      int // to each answer
		cuts         bool
		lost         int
	}{
		"calls":                   {head: "u0", answer: "a", next: "o", results: 1},
		"calls, nothing else":     {answer: "a", next: "o", results: 1},
		"calls, old results cut":  {head: "u0", answer: "a", next: "o", results: 1, cuts: true},
		"parallel calls":          {head: "u0", answer: "a", next: "o", results: 4},
		"short ids":               {key: "k", head: "u0", answer: "c", next: "r", results: 1},
		"short ids, nothing else": {key: "k", answer: "c", next: "r", results: 1, lost: 1},
		"no calls":                {key: "k", head: "u0", answer: "g", next: "u", results: 1},
		"no calls, nothing else":  {key: "k", answer: "g", next: "u", results: 1, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, scope := newFixture(t), session.Scope{Tenant: "t", Key: client.key}
			head, tail := strings.Fields(client.head), []string{"g00"}
			hidden, lost := 0, 0 // messages of the tail that are hidden
			for step := range 40 {
				n := string(rune('A'+step/26)) + string(rune('a'+step%26))
				tail = append(tail, client.answer+n)
				for i := range client.results {
					tail = append(tail, client.next+n+strings.Repeat("x", i))
				}
				for len(tail) > window || strings.HasPrefix(tail[0], client.next) {
					tail, hidden = tail[1:], max(hidden-1, 0)
				}
				q := query(scope, strings.Join(slices.Concat(head, tail), " "))
				if client.cuts {
					old := slices.Clone(tail[:max(len(tail)-8, 0)])
					q = cut(q, scope, slices.DeleteFunc(old, func(w string) bool { return !strings.HasPrefix(w, client.next) })...)
				}
				view := strings.Fields(d.shown(q))
				if hidden > 0 && !slices.Contains(view, "sum") {
					hidden = 0
					lost++
				}
				want := slices.Clone(head)
				if hidden > 0 {
					want = append(want, "sum")
				}
				want = append(want, all(q)[len(head)+hidden:]...)
				if !slices.Equal(view, want) {
					t.Errorf("step %d: %s is shown, want %s", step, view, want)
				}
				if len(view) > most {
					from := hidden
					for hidden = len(tail) - kept; !strings.HasPrefix(tail[hidden], client.answer); hidden++ {
					}
					d.condensed(q, "sum", session.Range{From: len(head) + from + 1, To: len(head) + hidden + 1})
				}
			}
			if lost != client.lost {
				t.Errorf("the condensations were lost %d times, want %d", lost, client.lost)
			}
		})
	}
}

// all returns the messages of a query.
func all(q session.Query) (out []string) {
	for _, m := range q.History.Messages {
		out = append(out, strings.Trim(string(m.Raw), `"`))
	}
	return out
}

// TestSlidingWindowDropsOnlyTheOldestMessages: condensations apply only if the missing messages are the first of the hidden ones and no
// other message has changed.
func TestSlidingWindowDropsOnlyTheOldestMessages(t *testing.T) {
	f := func(name, later, want string) {
		t.Helper()
		d, scope := newFixture(t), session.Scope{Tenant: "t"}
		d.condensed(query(scope, "u1 a1 o1 a2 o2 u2 a3 o3 a4 o4 u3"), "first", session.Range{From: 2, To: 6})
		d.condensed(query(scope, "u1 a1 o1 a2 o2 u2 a3 o3 a4 o4 u3 a5 o5"), "second", session.Range{From: 6, To: 9})
		if got := d.shown(query(scope, later)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	f("the oldest gone", "u1 a2 o2 u2 a3 o3 a4 o4 u3 a5 o5 a6 o6", "u1 second a4 o4 u3 a5 o5 a6 o6")
	f("the first message gone, too", "a2 o2 u2 a3 o3 a4 o4 u3 a5 o5 a6 o6", "second a4 o4 u3 a5 o5 a6 o6")
	f("all that the first hid gone", "u1 u2 a3 o3 a4 o4 u3 a5 o5 a6 o6", "u1 second a4 o4 u3 a5 o5 a6 o6")
	f("all but one call gone", "u1 a3 o3 a4 o4 u3 a5 o5", "u1 second a4 o4 u3 a5 o5")
	f("all gone", "u1 a4 o4 u3 a5 o5 a6 o6", "u1 a4 o4 u3 a5 o5 a6 o6")
	f("another first message", "u9 a2 o2 u2 a3 o3 a4 o4 u3 a5 o5", "u9 second a4 o4 u3 a5 o5")
	f("the newest gone, too", "u1 a2 o2 u2 a3 o3 a4 o4 u9", "u1 second a4 o4 u9")
	f("more kept at the beginning than is shown", "u1 a1 o1 u2 a3 o3 a4 o4 u3 a5 o5 a6 o6", "u1 second a4 o4 u3 a5 o5 a6 o6")
	f("one in between gone", "u1 a1 o1 a2 o2 a3 o3 a4 o4 u3 a5 o5", "u1 second a4 o4 u3 a5 o5")
	for name, later := range map[string]string{
		"another message":        "u1 a2 o2 u9 a3 o3 a4 o4 u3 a5 o5",
		"another answer":         "u1 a2 o2 u2 a9 o9 a4 o4 u3 a5 o5",
		"another result":         "u1 a2 o2 u2 a3 o9 a4 o4 u3 a5 o5",
		"one inserted":           "u1 a2 o2 u9 u2 a3 o3 a4 o4 u3 a5 o5",
		"one in front":           "u1 u2 u9 a2 o2 u2 a3 o3 a4 o4 u3 a5 o5",
		"nothing that proves it": "u1 a2 o2 u2 a3 o3",
	} {
		f(name, later, later)
	}
}

// TestThreeAnswersProveARun: if no call has a unique id, a sliding window is recognised by three answers in a row, but not by two.
func TestThreeAnswersProveARun(t *testing.T) {
	f := func(name, words, later, want string, results ...string) {
		t.Helper()
		d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
		d.condensed(query(scope, words), "sum", session.Range{From: 2, To: 8})
		if got := d.shown(cut(query(scope, later), scope, results...)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	const talk, calls = "u1 g1 u2 g2 u3 g3 u4 g4 u5", "u1 c1 r1 c2 r2 c3 r3 c4 r4 u5"
	f("three", talk, "u1 g2 u3 g3 u4 g4 u5 g5 u6", "u1 sum g4 u5 g5 u6")
	f("two", talk, "u1 u3 g3 u4 g4 u5 g5 u6", "u1 u3 g3 u4 g4 u5 g5 u6")
	f("three, the last of them changed", talk, "u1 g2 u3 g3 u4 g9 u5 g5 u6", "u1 g2 u3 g3 u4 g9 u5 g5 u6")
	f("three calls", calls, "u1 c2 r2 c3 r3 c4 r4 u5 g5 u6", "u1 sum c4 r4 u5 g5 u6")
	f("three calls, a hidden result shortened", calls, "u1 c2 r2 c3 r3 c4 r4 u5 g5 u6", "u1 c2 - c3 r3 c4 r4 u5 g5 u6", "r2")
}

// TestTrimsStayInASlidingWindow: a trimmed message stays trimmed until the client leaves it out. A copy is shown in full when its source is gone.
func TestTrimsStayInASlidingWindow(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t"}
	q := query(scope, "u1 a1 o1 a2 o2 a3 o3 a4 o4")
	res := d.send(d.registry, q)
	view := session.Project(q.History, nil)
	for i, trim := range []session.Trim{
		{Pos: 3, Head: 1}, {Pos: 5, Head: 1}, {Pos: 7, Head: session.Whole, Copies: []session.Copy{{Source: 3, To: 1}, {Source: 5, To: 1}}},
	} {
		_, err := d.registry.Condense(t.Context(), &res, &view, session.Condensation{
			Prefix: trim.Pos, Hash: q.History.Chain[trim.Pos], Trims: []session.Trim{trim}, Reason: session.ReasonArrival,
		})
		must(t, err)
		view.Applied = res.Thread.Condensations[:i+1]
	}
	q = query(scope, "u1 a2 o2 a3 o3 a4 o4 a5 o5")
	res = d.send(d.another(), q)
	var got []session.Trim
	for _, item := range projected(t, d, &res, q).Items {
		if item.Trim != nil {
			got = append(got, *item.Trim)
		}
	}
	want := []session.Trim{{Pos: 3, Head: 1}, {Pos: 5, Head: session.Whole, Copies: []session.Copy{{Source: 3, To: 1}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLostSummariesAreCounted: threads in a row that lose a summary are counted, until a summary is carried over or the client continues the
// thread. What a side request loses does not count.
func TestLostSummariesAreCounted(t *testing.T) {
	for name, client := range map[string]struct {
		edited int  // word changed at each step; 0: none
		side   bool // a request of another kind after each step
		want   [6]int
	}{
		"what a summary hides":         {edited: 5, want: [6]int{0, 1, 2, 3, 4, 5}},
		"with titles":                  {edited: 5, side: true, want: [6]int{0, 1, 2, 3, 4, 5}},
		"a message in front":           {edited: 0},
		"a message in front, titles":   {edited: 0, side: true},
		"nothing that a summary hides": {edited: 14},
	} {
		t.Run(name, func(t *testing.T) {
			d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
			words := strings.Fields("u1 a1 o1 u2 g2 u3 a3 o3 a4 o4 u4 a5 o5 a6 o6")
			d.condensed(query(scope, strings.Join(words[:11], " ")), "early", session.Range{From: 2, To: 4})
			for step, want := range client.want {
				n := string(rune('a' + step))
				words[client.edited] = words[client.edited][:1] + "9" + n
				words = append(words, "a8"+n, "o8"+n)
				q := query(scope, strings.Join(words, " "))
				res := d.send(d.another(), q)
				if res.Thread.Lost != want {
					t.Errorf("step %d: %d lost, want %d", step, res.Thread.Lost, want)
				}
				if again := d.send(d.another(), q); again.Thread.Lost != want {
					t.Errorf("step %d sent again: %d lost, want %d", step, again.Thread.Lost, want)
				}
				if applied := projected(t, d, &res, q).Applied; len(applied) < 2 {
					d.condensed(q, "late", session.Range{From: 4, To: 11})
				}
				if client.side {
					title := query(scope, "u7"+n+" a8"+n+" o8"+n+" u6")
					title.Purpose = session.PurposeTitle
					d.send(d.registry, title)
				}
			}
			if res := d.send(d.another(), query(scope, strings.Join(append(words, "a9", "o9"), " "))); res.Thread.Lost > 0 {
				t.Errorf("%d lost although the client goes on", res.Thread.Lost)
			}
		})
	}
}

// projected returns the view of a history that was sent.
func projected(t *testing.T, d *fixture, res *session.Resolution, q session.Query) session.View {
	t.Helper()
	applied, err := d.registry.Condensations(t.Context(), res)
	must(t, err)
	return session.Project(q.History, applied)
}

// traced is a store that records how many traces the largest look-up asked for.
type traced struct {
	session.Store
	most int
}

func (s *traced) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	s.most = max(s.most, len(traces))
	return s.Store.Trace(ctx, traces)
}

// TestPredecessorIsFoundWithFewLookups: only the newest answers and a few before them are looked up, so a long history costs little. The
// predecessor is found even if the newest answers did not pass through the proxy.
func TestPredecessorIsFoundWithFewLookups(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	store := &traced{Store: d.store}
	d.store = store
	var words []string
	for i := range 1000 {
		words = append(words, fmt.Sprintf("g%d u%d", i, i))
	}
	history := func(head string, n int) session.Query { return query(scope, head+" "+strings.Join(words[:n], " ")) }
	d.send(d.registry, query(scope, "u1 g1")) // the first thread of a session leaves no traces of its answers
	d.condensed(history("u0", 900), "sum", session.Range{From: 2, To: 1000})
	for _, n := range []int{901, 910, 940, 1000} {
		store.most = 0
		found := strings.Contains(d.shown(history(fmt.Sprintf("u0%d", n), n)), "sum")
		if !found || store.most < 16 || store.most > 32 {
			t.Errorf("%d answers: found %t by %d traces", n, found, store.most)
		}
	}
}
