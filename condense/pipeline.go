package condense

import (
	"cmp"
	"context"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Pipeline runs condensers one after another, each on the view that the one before it left. The first condensation is made. The
// view is that of all stages without it, since it may fail or come late. A request by the caller (Input.Need) reaches every stage
// until one of them answers it with a condensation. Pipelines may be nested.
//
// A stage that condenses hides messages of the history by position, even if earlier stages rewrote them: messages that those
// left out are hidden as well, and its summariser reads the messages as the client sent them, not as masked.
type Pipeline struct {
	Stages []Condenser
}

func (Pipeline) Name() string { return "pipeline" }

func (p Pipeline) Condense(in Input) Decision {
	var out Decision
	in.View = new(*in.View) // the caller may overwrite its own with the decision's view before the job runs
	staged := in
	for _, stage := range p.Stages {
		d := stage.Condense(staged)
		out.Obstacle = cmp.Or(out.Obstacle, d.Obstacle)
		if d.Job != nil && out.Job == nil {
			out.Job = d.Job
			if out.View != nil || d.View != nil {
				out.Job = &stagedJob{Job: d.Job, in: in}
			}
		}
		if d.View != nil {
			out.View = d.View
			staged = reshaped(staged, d.View)
		}
	}
	return out
}

// reshaped returns the input with another view. The total changes by the difference: it may be more exact than a sum.
func reshaped(in Input, v *session.View) Input {
	in.Total += total(in.Measure(v.Items)) - total(in.Measure(in.View.Items))
	in.View = v
	return in
}

// stagedJob is the job of a stage that saw another view than the one that is logged.
type stagedJob struct {
	Job
	in Input // of the whole pipeline
}

// Run sets the sizes of messages to those in the pipeline's own view, not as rewritten by an earlier stage.
func (j *stagedJob) Run(ctx context.Context) (Result, error) {
	r, err := j.Job.Run(ctx)
	c, v := &r.Condensation, j.in.View
	switch {
	case err != nil:
	case len(c.Forgotten) > 0:
		keep := make([]bool, len(v.Items))
		for i, item := range v.Items {
			keep[i] = item.Index < 0 || !c.Hides(v.History.Pos(item.Index))
		}
		c.ForgottenTokens = j.in.Total - reshaped(j.in, viewOf(&j.in, keep)).Total
	case len(c.Trims) > 0:
		c.ForgottenTokens = j.in.Total - reshaped(j.in, withTrims(j.in, c.Trims)).Total
	}
	return r, err
}
