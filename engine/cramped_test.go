package engine_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// TestLimitsThatLeaveNoMemoryAreReported: once for a model, and only if it is a limit of tokens that leaves little.
func TestLimitsThatLeaveNoMemoryAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		settings condense.Settings
		messages int
		want     int
	}{
		"a low limit":         {condense.Settings{MaxTokens: 1500, KeepFirst: 1}, 31, 1},
		"a limit with memory": {condense.Settings{MaxTokens: 6000, KeepFirst: 1}, 111, 0},
		"a limit of events":   {condense.Settings{MaxSize: 20, KeepFirst: 1}, 31, 0},
		"below the limit":     {condense.Settings{MaxTokens: 6000, KeepFirst: 1}, 21, 0},
	} {
		r := newRig(t, condense.AmortizedForgetting{Settings: c.settings})
		said := 0
		for n := c.messages; n < c.messages+40; n += 20 {
			turn := r.begin(says(n), engine.WishNone)
			if report := turn.Condense(t.Context()); report.Cramped != nil {
				said++
				if report.Cramped.Memory >= condense.LeastMemory || report.Cramped.Tokens == 0 {
					t.Errorf("%s: %+v", name, *report.Cramped)
				}
			}
			r.logged(turn)
		}
		if said != c.want {
			t.Errorf("%s: said %d times", name, said)
		}
	}
}
