package condense_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// decided is a condenser with a fixed decision.
type decided condense.Decision

func (decided) Name() string                                { return "decided" }
func (d decided) Condense(condense.Input) condense.Decision { return condense.Decision(d) }

type jobOf struct {
	condense.Job
	need condense.Need
}

func (j jobOf) Need() condense.Need { return j.need }

// TestHeldOut checks that a held-out session is condensed only for its window or on request, and is never shown in another
// view.
func TestHeldOut(t *testing.T) {
	asked := condense.Need{Reason: session.ReasonRequest}
	for name, c := range map[string]struct {
		decision condense.Decision
		asked    condense.Need
		job      bool
		view     bool
		obstacle condense.Obstacle
	}{
		"nothing": {},
		"a view":  {decision: condense.Decision{View: &session.View{}}},
		"a view, asked for": {
			decision: condense.Decision{View: &session.View{}}, asked: asked, view: true,
		},
		"soft":   {decision: condense.Decision{Job: jobOf{}}, obstacle: condense.ObstacleHeldOut},
		"hard":   {decision: condense.Decision{Job: jobOf{need: condense.Need{Hard: true}}}, job: true},
		"asked":  {decision: condense.Decision{Job: jobOf{}}, asked: asked, job: true},
		"cooled": {decision: condense.Decision{Obstacle: condense.ObstacleCooling}, obstacle: condense.ObstacleCooling},
	} {
		d := condense.HeldOut{Condenser: decided(c.decision)}.Condense(condense.Input{Need: c.asked})
		if (d.Job != nil) != c.job || (d.View != nil) != c.view || d.Obstacle != c.obstacle {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
