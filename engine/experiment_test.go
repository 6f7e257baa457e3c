package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// compared enters an answered request in the holdout, at a cost of one dollar.
func (r *rig) compared(b *body) *request {
	r.Helper()
	turn := r.begin(b, engine.WishNone)
	r.logged(turn)
	must(r.T, turn.Compare(r.Context(), 1, true))
	return turn
}

// wantSums checks the sums of all sessions in the holdout.
func (r *rig) wantSums(want session.Sums) {
	r.Helper()
	e, err := r.engine.Experiment(r.Context(), r.tenant.Name, r.tenant.Holdout)
	must(r.T, err)
	var got session.Sums
	for _, arm := range e.Arms {
		for _, group := range arm {
			got.Add(group)
		}
	}
	if got != want {
		r.Errorf("the holdout has %+v, want %+v", got, want)
	}
}

// TestHoldoutCountsRetriedSessions: a session whose first request fails counts once it has an answer.
func TestHoldoutCountsRetriedSessions(t *testing.T) {
	r := newRig(t, condense.Noop{})
	r.tenant.Holdout.Share = .5
	r.logged(r.begin(says(1), engine.WishNone)) // upstream fails
	r.wantSums(session.Sums{})
	r.compared(says(1))
	r.compared(says(3))
	r.wantSums(session.Sums{Sessions: 1, Steps: 2, Nano: 2e9})
}

// TestHoldoutLeavesOutOldSessions: a session that began before the experiment stays out of it, although its client begins another thread.
func TestHoldoutLeavesOutOldSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, condense.Noop{})
		old := r.begin(says(9), engine.WishNone)
		r.logged(old)
		must(t, old.Answered(dialect.Answer{Text: "Very."}, nil)(t.Context()))
		r.logged(r.begin(says(11), engine.WishNone))
		time.Sleep(time.Hour)
		r.tenant.Holdout.Share = .5
		r.compared(&body{bytes: []byte(`{"model":"m","messages":[{"role":"user","content":"How high is the sky?"}]}`)})
		time.Sleep(time.Hour)
		fork := r.compared(&body{bytes: []byte(strings.Replace(string(says(11).bytes), "10: The", "No, the", 1))})
		if place := fork.Place(); place.Match != session.MatchInside || place.Thread.Session != old.Place().Thread.Session {
			t.Errorf("it is no fork: %+v", place.Match)
		}
		r.wantSums(session.Sums{Sessions: 1, Steps: 1, Nano: 1e9})
	})
}

// TestBudgetsLeaveHeldOutSessionsAlone: held-out sessions are not condensed when little of a budget is left.
func TestBudgetsLeaveHeldOutSessionsAlone(t *testing.T) {
	for share, want := range map[float64]bool{0: true, 1: false} {
		r := newRig(t, rolling())
		r.tenant.Holdout.Share = share
		turn := r.begin(says(9), engine.WishNone)
		turn.LimitTo(10)
		report := turn.Condense(t.Context())
		if made := report.Overall() == engine.Done; made != want {
			t.Errorf("with a share of %v held out: %s", share, report.Overall())
		}
	}
}

// TestArmHasItsOwnCondenser: sessions that are held out are condensed as the arm says, the others as the tenant says, and each arm has its sums.
func TestArmHasItsOwnCondenser(t *testing.T) {
	for share, want := range map[float64]bool{0: false, 1e-12: false, 1: true} {
		r := newRig(t, condense.Noop{})
		r.tenant.Holdout = session.Holdout{Share: share, Variant: "rolling"}
		r.tenant.Arm = &engine.Strategy{Condenser: rolling(), Deadline: time.Second}
		turn := r.begin(says(21), engine.WishNone)
		report := turn.Condense(t.Context())
		if made := report.Overall() == engine.Done; made != want {
			t.Errorf("with a share of %v: %s", share, report.Overall())
		}
		if share > 0 {
			must(t, turn.Compare(t.Context(), 1, true))
			must(t, turn.CompareFailure(t.Context()))
			e, err := r.engine.Experiment(t.Context(), r.tenant.Name, r.tenant.Holdout)
			must(t, err)
			arm := session.Treated
			if want {
				arm = session.HeldOut
			}
			var got session.Sums
			for _, group := range e.Arms[arm] {
				got.Add(group)
			}
			if got != (session.Sums{Sessions: 1, Steps: 1, Errors: 1, Nano: 1e9}) {
				t.Errorf("with a share of %v, arm %d has %+v", share, arm, got)
			}
		}
	}
}
