package knowledge

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// inEach is Topics.In as a plain loop.
func inEach(all []Topic, lower string) (found []string) {
	for _, topic := range all {
		trigger := ""
		if i := slices.IndexFunc(topic.Triggers, func(trigger string) bool { return strings.Contains(lower, trigger) }); i >= 0 {
			trigger = topic.Triggers[i]
		}
		if trigger != "" || len(topic.Triggers) == 0 {
			found = append(found, topic.Name+" by "+trigger)
		}
	}
	return found
}

// TestTriggersAreFoundAsByALoop compares random topics and texts, of few letters, so that triggers overlap and contain each other.
func TestTriggersAreFoundAsByALoop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteString([]string{"a", "b", "ab", "é", "中", " ", "\xff", "\x00"}[random.IntN(8)])
		}
		return b.String()
	}
	for range 3000 {
		all := make([]Topic, random.IntN(8))
		for i := range all {
			all[i].Name = fmt.Sprint(i)
			for range random.IntN(4) {
				all[i].Triggers = append(all[i].Triggers, word(6))
			}
		}
		topics, err := NewTopics(all)
		if err != nil {
			t.Fatal(err)
		}
		text := word(1 + random.IntN(30))
		if random.IntN(10) == 0 { // the text is searched in parts
			text = strings.Repeat("-", 16<<10-random.IntN(12)) + text + strings.Repeat("-", 16<<10-len(text)-random.IntN(12)) + word(10)
		}
		var got []string
		for _, f := range topics.In(text) {
			got = append(got, f.Name+" by "+f.Trigger)
		}
		if want := inEach(all, text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %q, want %q", all, text, got, want)
		}
	}
}

// topicsOf returns n topics with a trigger each, none of which a text of the alphabet contains.
func topicsOf(t *testing.T, n int) *Topics {
	t.Helper()
	all := make([]Topic, n)
	for i := range all {
		all[i] = Topic{Name: fmt.Sprint(i), Triggers: []string{fmt.Sprintf("trigger %d", i)}}
	}
	topics, err := NewTopics(all)
	if err != nil {
		t.Fatal(err)
	}
	return topics
}

// TestAllTriggersTakeOnePass: the time to search a text hardly depends on the number of triggers.
func TestAllTriggersTakeOnePass(t *testing.T) {
	topics := map[string]*Topics{"2": topicsOf(t, 2), "250": topicsOf(t, 250)}
	text := strings.Repeat("the trigger is not here. ", 40<<10)
	lineartest.Compare(t, func(n string) { _ = topics[n].In(text) }, "2", "250", 10) // a loop takes 125 times as long
}

// TestManyMatchesTakeLittleMemory searches a text that is nothing but triggers.
func TestManyMatchesTakeLittleMemory(t *testing.T) {
	topics, err := NewTopics([]Topic{{Name: "a", Triggers: []string{"a", "aa", "aaa"}}, {Name: "b", Triggers: []string{"b"}}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 2<<20)
	var most, before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if len(topics.In(text)) != 1 {
		t.Error("not found")
	}
	runtime.ReadMemStats(&most)
	if grown := int64(most.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap grew by %d bytes for a text of %d", grown, len(text))
	}
}

func TestTooManyTriggers(t *testing.T) {
	var many []string
	for i := range maxTriggers / maxTrigger {
		many = append(many, fmt.Sprintf("%0*d", maxTrigger, i))
	}
	if _, err := NewTopics([]Topic{{Triggers: many}, {Triggers: many}}); err != nil {
		t.Errorf("the same triggers twice: %v", err)
	}
	if _, err := NewTopics([]Topic{{Triggers: many}, {Triggers: []string{"y"}}}); err == nil || !strings.Contains(err.Error(), "longer than 65536 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestAliasBomb: front matter whose aliases stand for millions of values is refused before it takes memory.
func TestAliasBomb(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parse("bomb", "---\n"+bomb()+"---\nText.")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
	if err == nil || !strings.Contains(err.Error(), "contains more than 50000 values, aliases expanded") {
		t.Errorf("got %v", err)
	}
}

// bomb returns front matter of a few hundred bytes that stands for 9^7 values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'h'; c++ {
		fmt.Fprintf(&b, "%c: &%[1]c [%s*%c]\n", c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	b.WriteString("triggers: [x]\n")
	return b.String()
}
