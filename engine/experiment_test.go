package engine_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
)

// TestBudgetsLeaveHeldOutSessionsAlone: held-out sessions are not condensed when little of a budget is left.
func TestBudgetsLeaveHeldOutSessionsAlone(t *testing.T) {
	for share, want := range map[float64]bool{0: true, 1: false} {
		r := newRig(t, rolling())
		r.tenant.Holdout = share
		turn := r.begin(says(9), engine.WishNone)
		turn.LimitTo(10)
		report := turn.Condense(t.Context())
		if made := report.Outcome() == engine.Done; made != want {
			t.Errorf("with a share of %v held out: %s", share, report.Outcome())
		}
	}
}
