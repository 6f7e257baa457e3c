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
		target        session.Size
		after         session.Size // before: 100 events, 1000 tokens
		anything      bool
		enough, other bool // progress by that, or with one more of each left
	}{
		"events":                {events, session.Size{Events: 90, Tokens: 990}, false, true, false},
		"tokens":                {tokens, session.Size{Events: 99, Tokens: 900}, false, true, false},
		"either of them":        {session.Size{Events: 50, Tokens: 500}, session.Size{Events: 90, Tokens: 990}, false, true, false},
		"events with no tokens": {events, session.Size{Events: 50, Tokens: 999}, false, true, false},
		"anything":              {tokens, session.Size{Events: 100, Tokens: 999}, true, true, false},
	} {
		j := job{Settings: Settings{MinimumProgress: .1}, due: Due{Target: c.target}, in: Input{View: &session.View{Items: make([]session.Item, 100)}}}
		before := session.Size{Events: 100, Tokens: 1000}
		if got := j.progresses(before, c.after, c.anything); got != c.enough {
			t.Errorf("%s: %t", name, got)
		}
		if got := j.progresses(before, plus(c.after, session.Size{Events: 1, Tokens: 1}), c.anything); got != c.other {
			t.Errorf("%s, one more of each left: %t", name, got)
		}
	}
}
