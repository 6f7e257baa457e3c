package condense

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestProgressBounds checks both sides of the minimum progress, here a tenth, in the dimensions that a condensation is about. A view never grows
// in tokens.
func TestProgressBounds(t *testing.T) {
	events, tokens := session.Size{Events: 50, Tokens: unlimited}, session.Size{Events: unlimited, Tokens: 500}
	for name, c := range map[string]struct {
		target   session.Size
		after    session.Size // just enough, before were 100 events and 1000 tokens
		anything bool
	}{
		"events":                {events, session.Size{Events: 90, Tokens: 990}, false},
		"tokens":                {tokens, session.Size{Events: 99, Tokens: 900}, false},
		"either of them":        {session.Size{Events: 50, Tokens: 500}, session.Size{Events: 90, Tokens: 990}, false},
		"events with no tokens": {events, session.Size{Events: 50, Tokens: 999}, false},
		"anything":              {tokens, session.Size{Events: 100, Tokens: 999}, true},
	} {
		j := job{Settings: Settings{MinimumProgress: .1}, due: Due{Target: c.target}, in: Input{View: &session.View{Items: make([]session.Item, 100)}}}
		before := session.Size{Events: 100, Tokens: 1000}
		if !j.progresses(before, c.after, c.anything) {
			t.Errorf("%s: not enough", name)
		}
		if j.progresses(before, plus(c.after, session.Size{Events: 1, Tokens: 1}), c.anything) {
			t.Errorf("%s: enough with one more of each left", name)
		}
	}
}

// TestRoom: an answer's share of a window is what the client asks for, at most half of the window.
func TestRoom(t *testing.T) {
	for reserved, want := range map[int]int{0: 980, 500: 480, 501: 480, 5000: 480} {
		if got := Room(Input{Window: 1000, Reserved: reserved}); got != want {
			t.Errorf("%d are reserved of 1000: room for %d, want %d", reserved, got, want)
		}
	}
}
