package condense

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// job is a condensation that hides what its cut says. The other jobs embed it.
type job struct {
	Settings
	name    string // of the condenser
	in      Input
	due     Due
	cut     Cut
	settled bool // the cut must not change any more
}

func (j *job) Need() Need { return j.due.Need }

func (j *job) Asks() bool { return false }

func (j *job) Plan() (session.Condensation, int) { return j.plain(j.cut), 0 }

// Run makes no call.
func (j *job) Run(context.Context) (Result, error) {
	return Result{Condensation: j.plain(j.cut)}, nil
}

// plain returns the condensation of a cut without a summary.
func (j *job) plain(c Cut) session.Condensation {
	c.Reason, c.Condenser = j.due.Need.Reason, j.name
	return c.Condensation
}

// job returns a job of a rolling condenser, without a cut yet.
func (s Settings) job(name string, in Input) job {
	return job{Settings: s, name: name, in: in, due: s.Due(in)}
}

// decide returns the decision to run a job, if a condensation is due and cut finds a cut for it. cut returns why not, or "".
func (j *job) decide(run Job, cut func() Obstacle) Decision {
	if j.due.Need.Reason == "" {
		return Decision{Obstacle: j.due.Obstacle}
	}
	if obstacle := cut(); obstacle != "" {
		return Decision{Obstacle: obstacle, Due: j.due.Need.Reason}
	}
	return Decision{Job: run, Due: j.due.Need.Reason}
}

// shrink sets the cut that leaves room for a summary of the given size.
func (j *job) shrink(summary session.Size) Obstacle {
	var ok bool
	j.cut, ok = j.cutFor(summary)
	if !ok {
		return ObstacleUncut
	}
	return ""
}

// cutFor returns the cut that brings the view down to the target, with room for a summary of the given size, which replaces
// the one that the view shows. With size zero there is no new summary, and the one shown stays. It reports false if there is
// nothing to hide, or too little: less than the minimum progress, or no more tokens than the summary would add.
func (j *job) cutFor(summary session.Size) (Cut, bool) {
	p := j.picker(summary)
	p.tail(j.due.Target)
	return j.worthwhile(p, summary)
}

// picker returns a picker that has picked what every rolling strategy keeps: the protected items and the head.
func (j *job) picker(summary session.Size) *picker {
	p := newPicker(&j.in, j.in.Measure(j.in.View.Items))
	p.kept, p.urgent = summary, j.due.Need.Hard
	if summary == (session.Size{}) {
		p.summaries()
	}
	p.protect()
	p.head(j.KeepFirst, j.due.Target)
	p.edited(j.due.Later)
	return p
}

// worthwhile returns the cut that hides the items not picked. It reports false unless that, net of the summary, is enough.
func (j *job) worthwhile(p *picker, summary session.Size) (Cut, bool) {
	c, ok := p.cut()
	anything := j.due.Need.Reason == session.ReasonOverflow // upstream refused the view: any progress is better
	return c, ok && j.progresses(c.Before, plus(c.After, summary), anything)
}

// progresses reports whether a view shrinks in tokens, and in one of the dimensions that the condensation is about by the
// minimum progress or, if anything is enough, at all.
func (j *job) progresses(before, after session.Size, anything bool) bool {
	if after.Tokens >= before.Tokens || anything {
		return after.Tokens < before.Tokens
	}
	progress := func(before, after int) bool {
		return after < before && float64(before-after) >= j.MinimumProgress*float64(before)
	}
	later := len(j.in.View.Items) - events(j.in.View.Items) // system messages that count for no limit
	before.Events, after.Events = before.Events-later, after.Events-later
	events, tokens := j.due.Target.Events != unlimited, j.due.Target.Tokens != unlimited
	return events && progress(before.Events, after.Events) || tokens && progress(before.Tokens, after.Tokens)
}

// suffices reports whether the view shrinks enough by a condensation, its summary included. If the need is hard, or the summary
// replaces excerpts that are shown already, any progress is better than none.
func (j *job) suffices(after session.Size) bool {
	return j.progresses(j.cut.Before, after, j.settled || j.due.Need.Hard || j.due.Need.Reason == session.ReasonOverflow)
}
