package recall_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// quarters counts one token for every four bytes.
func quarters(s string) int { return (len(s) + 3) / 4 }

// TestEveryTermIsFound searches generated events for words that they contain. Each must be in the first line of the answer,
// and no answer may exceed its room.
func TestEveryTermIsFound(t *testing.T) {
	term := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9_./:-]{3,40}`), rapid.StringMatching(`[äßé世]{3,9}`), rapid.SampledFrom([]string{"the", "err", "0x3f"}))
	long := rapid.Map(rapid.IntRange(0, 300), func(n int) string { return strings.Repeat("x ", n) })
	text := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 30).Draw(t, "words") {
			b.WriteString(term.Draw(t, "term") + rapid.SampledFrom([]string{" ", "\n", "\t", `","`, "("}).Draw(t, "between"))
			if rapid.IntRange(0, 9).Draw(t, "pad") == 0 {
				b.WriteString(long.Draw(t, "long"))
			}
		}
		return b.String()
	})
	property.Check(t, func(t *rapid.T) {
		var events []recall.Event
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			events = append(events, recall.Event{ID: recall.EventID(i+1, 0), Source: "tool result", Text: text.Draw(t, "text")})
		}
		room := recall.Room{Tokens: rapid.IntRange(200, 900).Draw(t, "tokens"), Count: quarters}
		for _, e := range events {
			for i, word := range strings.Fields(e.Text) {
				if len(word) > 100 || i > 2 {
					continue
				}
				got := recall.Lines(events, word, room)
				first, _, _ := strings.Cut(got, "\n")
				if !strings.Contains(first, word) {
					t.Fatalf("%q is not found first: %s", word, got)
				}
				if n := quarters(got); n > room.Tokens {
					t.Fatalf("%d tokens of %d", n, room.Tokens)
				}
			}
		}
		if n := quarters(recall.Whole(events, room)); n > room.Tokens {
			t.Fatalf("whole events are %d tokens of %d", n, room.Tokens)
		}
	})
}

func TestLinesByWords(t *testing.T) {
	var events []recall.Event
	for i := range 50 {
		events = append(events, recall.Event{ID: recall.EventID(i+1, 0), Source: "tool result", Text: fmt.Sprintf("the build went well in step %d\nnothing to report of the build", i)})
	}
	events[7].Text += "\nthe parser failed with a missing bracket near the handler"
	got := recall.Lines(events, "why did the parser fail: missing bracket?", recall.Room{Tokens: 200, Count: quarters})
	if first, _, _ := strings.Cut(got, "\n"); first != "[event 8, tool result] the parser failed with a missing bracket near the handler" {
		t.Errorf("got %s", got)
	}
	if got := recall.Lines(events, "zebra", recall.Room{Tokens: 200, Count: quarters}); !strings.HasPrefix(got, "Nothing") {
		t.Errorf("got %s", got)
	}
}

// TestEqualLinesKeepTheirOrder checks that lines with equal scores come in the same order every time.
func TestEqualLinesKeepTheirOrder(t *testing.T) {
	events := []recall.Event{
		{ID: "1", Source: "tool result", Text: "alpha one\nalpha two\nalpha six\nalpha ten\nbeta gamma delta epsilon zeta"},
		{ID: "2", Source: "tool result", Text: "beta x\nbeta y\ngamma x\ndelta\nother"},
		{ID: "3", Source: "tool result", Text: "gamma y\nmore\nthis and that"},
	}
	room := recall.Room{Tokens: 10000, Count: func(s string) int { return len(s) }}
	first := recall.Lines(events, "alpha beta gamma delta epsilon zeta", room)
	for range 100 {
		if got := recall.Lines(events, "alpha beta gamma delta epsilon zeta", room); got != first {
			t.Fatalf("once\n%s\nthen\n%s", first, got)
		}
	}
}

// TestRelayedEventsAreNotTheUsers: what another agent said, which stands among the user's messages, is not shown as the user's.
func TestRelayedEventsAreNotTheUsers(t *testing.T) {
	for role, want := range map[string]string{"user": "user", "tool": "tool result"} {
		if got := recall.NewEvent("1", session.User, session.Content{Role: role, Text: "Push to main."}); got.Source != want {
			t.Errorf("a message of role %s comes from %q, want %q", role, got.Source, want)
		}
	}
}
