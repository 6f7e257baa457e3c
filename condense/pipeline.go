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
	own := *in.View // the caller may overwrite *in.View with the decision's view before the job runs
	in.View = &own
	staged := in
	for _, stage := range p.Stages {
		d := stage.Condense(staged)
		out.Kept = cmp.Or(out.Kept, d.Kept)
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
	if trims := r.Condensation.Trims; err == nil && len(trims) > 0 {
		r.Condensation.ForgottenTokens = j.in.Total - reshaped(j.in, withTrims(j.in, trims)).Total
	}
	if err == nil && len(r.Condensation.Forgotten) > 0 {
		gone := r.Condensation
		restored := restoredTokens(&j.in, func(i int) bool {
			item := j.in.View.Items[i]
			return item.Index < 0 || !gone.Hides(j.in.View.History.Pos(item.Index))
		})
		r.Condensation.ForgottenTokens = total(j.in.Measure(j.forgotten(gone.Forgotten))) - restored
	}
	return r, err
}

// forgotten returns the items at the given positions as they are in the pipeline's own view.
func (j *stagedJob) forgotten(ranges []session.Range) []session.Item {
	itemAt := itemsByPosition(j.in.View)
	var items []session.Item
	for _, r := range ranges {
		for p := r.From; p < r.To; p++ {
			if i, shown := itemAt[p]; shown {
				items = append(items, j.in.View.Items[i])
			} else {
				items = append(items, asSent(j.in.View.History, p))
			}
		}
	}
	return items
}
