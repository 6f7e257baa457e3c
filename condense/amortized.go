package condense

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// AmortizedForgetting is the rolling condenser without a model: it forgets the middle, so that half of what trips it is
// left. It makes no summary; one that the view shows already stays.
type AmortizedForgetting struct {
	Settings
}

var _ Condenser = AmortizedForgetting{}

// Name implements Condenser.
func (AmortizedForgetting) Name() string { return "amortized_forgetting" }

// Condense implements Condenser.
func (a AmortizedForgetting) Condense(in Input) Decision {
	due := a.Due(in)
	if due.Need.Reason == "" {
		return Decision{Kept: due.Kept}
	}
	c, ok := a.Cut(in, due, session.Size{})
	if !ok {
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &cutJob{need: due.Need, condensation: c.condensation(due.Need.Reason, a.Name())}}
}

// cutJob forgets what was decided.
type cutJob struct {
	need         Need
	condensation session.Condensation
}

var _ Job = (*cutJob)(nil)

// Need implements Job.
func (j *cutJob) Need() Need { return j.need }

// Asks implements Job.
func (j *cutJob) Asks() bool { return false }

// Plan implements Job.
func (j *cutJob) Plan() (session.Condensation, int) { return j.condensation, 0 }

// Run implements Job. It makes no call.
func (j *cutJob) Run(context.Context) (Result, error) {
	return Result{Condensation: j.condensation}, nil
}
