package condense_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestLosslessTrimIsFrozen checks that what was shown once is shown again, byte for byte, as a history grows, and that a
// history without trims is the client's own.
func TestLosslessTrimIsFrozen(t *testing.T) {
	trimmed := 0
	property.Check(t, func(t *rapid.T) {
		g := condensetest.NewGenerator(t)
		p := &pairRun{t: t, c: condense.LosslessTrim{}}
		var before session.View
		for range rapid.IntRange(2, 8).Draw(t, "requests") {
			h := session.NewHistory(session.Hash{}, g.Grow(6))
			p.request(h)
			v := project(h, p.log)
			for i, item := range before.Items {
				if !bytes.Equal(item.Raw, v.Items[i].Raw) {
					t.Fatalf("item %d was %s, and is %s", i, item.Raw, v.Items[i].Raw)
				}
			}
			if len(p.log) == 0 && !v.Identity() {
				t.Fatal("nothing was trimmed, and the view is another one")
			}
			before = v
		}
		trimmed += p.trims
	})
	if trimmed == 0 {
		t.Error("nothing was ever trimmed")
	}
}

// TestCopiesAreOfTheSameText checks that a log made wrong by an edit of another history leads to no note about text that
// does not exist.
func TestCopiesAreOfTheSameText(t *testing.T) {
	lines := strings.Repeat("a line of the file that is read twice\n", 3) + "another one\n" + strings.Repeat("b line of the file that is read twice\n", 20)
	history := func(first string) *session.History {
		return session.NewHistory(session.Hash{}, []session.Message{
			condensetest.Message(session.Content{Role: "user", Text: "go"}),
			condensetest.Message(session.Content{Role: "assistant", Calls: []session.Call{{ID: "a", Name: "cat"}, {ID: "b", Name: "cat"}}}),
			condensetest.Message(session.Content{Role: "tool", Result: "a", Text: first}),
			condensetest.Message(session.Content{Role: "tool", Result: "b", Text: lines}),
		})
	}
	h := history(lines)
	good := session.Trim{Pos: 4, Head: session.Whole, Copies: []session.Copy{{From: 0, To: len(lines) - 1, Source: 3}}}
	f := func(name string, h *session.History, trim session.Trim, want bool) {
		t.Helper()
		v := project(h, []session.Condensation{{Prefix: 4, Hash: h.Chain[4], Trims: []session.Trim{trim}}})
		if got := strings.Contains(string(v.Items[3].Raw), "left out here"); got != want {
			t.Errorf("%s: %s", name, v.Items[3].Raw)
		}
		if err := condensetest.Shaped(&v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("as decided", h, good, true)
	f("another text", history(strings.Replace(lines, "another", "an other", 1)), good, false)
	f("a shorter text", history(lines[:40]), good, false)
	for name, c := range map[string]session.Copy{
		"negative": {From: -5, To: 10, Source: 3}, "backwards": {From: 10, To: 5, Source: 3}, "too long": {From: 0, To: len(lines) + 1, Source: 3},
		"no source": {From: 0, To: 10, Source: 9}, "a later one": {From: 0, To: 10, Source: 4}, "before the text": {From: 0, To: 10, Source: 3, At: -1},
		"a position of no result": {From: 0, To: 10, Source: 2},
	} {
		f(name, h, session.Trim{Pos: 4, Head: session.Whole, Copies: []session.Copy{c}}, false)
	}
}

// BenchmarkLosslessTrim adds a result to a history with a megabyte of others.
func BenchmarkLosslessTrim(b *testing.B) {
	messages := []session.Message{condensetest.Message(session.Content{Role: "user", Text: "go"})}
	for n, size := 0, 0; size < 1<<20; n++ {
		var text strings.Builder
		for line := range 100 {
			fmt.Fprintf(&text, "%4d\tfunc line%d(of int) string { return file(%d) }\n", line, line, n)
		}
		size += text.Len()
		id := fmt.Sprint("c", n)
		messages = append(messages,
			condensetest.Message(session.Content{Role: "assistant", Calls: []session.Call{{ID: id, Name: "cat"}}}),
			condensetest.Message(session.Content{Role: "tool", Result: id, Text: text.String()}))
	}
	v := project(session.NewHistory(session.Hash{}, messages), nil)
	in := input(&v)
	b.ResetTimer()
	for b.Loop() {
		condense.LosslessTrim{}.Condense(in)
	}
}
