package condense

import (
	"cmp"
	"context"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Pipeline runs condensers one after another, each on the view that the one before it left, and stops at the first
// condensation. What was asked for from outside reaches every stage until one of them answers it with a condensation.
// Pipelines may hold pipelines.
//
// A stage that condenses forgets messages of the history, by position, whatever earlier stages made of them: what they
// left out goes with what it forgets, and its summariser reads the messages as the client sent them, not as masked.
type Pipeline struct {
	Stages []Condenser
}

func (Pipeline) Name() string { return "pipeline" }

func (p Pipeline) Condense(in Input) Decision {
	var out Decision
	own := *in.View // the caller may put the decision's view in its place before the job is run
	in.View = &own
	staged := in
	for _, stage := range p.Stages {
		d := stage.Condense(staged)
		out.Kept = cmp.Or(out.Kept, d.Kept)
		if d.View != nil {
			out.View = d.View
			staged = reshaped(staged, d.View)
		}
		if d.Job != nil {
			out.Job = d.Job
			if out.View != nil {
				out.Job = &stagedJob{Job: d.Job, in: in}
			}
			break
		}
	}
	return out
}

// reshaped is the input with another view of the same history. The rest of the total may be finer than a sum of counts.
func reshaped(in Input, v *session.View) Input {
	in.Total += total(in.Measure(v.Items)) - total(in.Measure(in.View.Items))
	in.View = v
	return in
}

// stagedJob is the job of a stage that saw another view than the one which is logged.
type stagedJob struct {
	Job
	in Input // of the pipeline
}

// Run logs the sizes of messages as the condensations before show them, and not as a stage
// of this request rewrote them.
func (j *stagedJob) Run(ctx context.Context) (Result, error) {
	r, err := j.Job.Run(ctx)
	if err == nil && len(r.Condensation.Forgotten) > 0 {
		gone := r.Condensation
		back := returning(&j.in, func(i int) bool {
			item := j.in.View.Items[i]
			return item.Index < 0 || !gone.Hides(j.in.View.History.Pos(item.Index))
		})
		r.Condensation.ForgottenTokens = total(j.in.Measure(j.forgotten(gone.Forgotten))) - back
	}
	return r, err
}

// forgotten gives the items at positions, as the pipeline's own view has them.
func (j *stagedJob) forgotten(ranges []session.Range) []session.Item {
	history := j.in.View.History
	shown := map[int]session.Item{}
	for _, item := range j.in.View.Items {
		if item.Index >= 0 {
			shown[history.Pos(item.Index)] = item
		}
	}
	var items []session.Item
	for _, r := range ranges {
		for p := r.From; p < r.To; p++ {
			item, ok := shown[p]
			if !ok {
				item = asSent(history, p)
			}
			items = append(items, item)
		}
	}
	return items
}
