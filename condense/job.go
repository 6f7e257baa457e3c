package condense

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// job is a condensation that is due: one that forgets what its cut says, and the beginning of all others.
type job struct {
	Settings
	name    string // of the condenser
	in      Input
	due     Due
	cut     Cut
	settled bool // the cut is to stay as it is
}

func (j *job) Need() Need { return j.due.Need }

func (j *job) Asks() bool { return false }

func (j *job) Plan() (session.Condensation, int) { return j.plain(j.cut), 0 }

// Run makes no call.
func (j *job) Run(context.Context) (Result, error) {
	return Result{Condensation: j.plain(j.cut)}, nil
}

// plain is the condensation that a cut makes without a summary.
func (j *job) plain(c Cut) session.Condensation {
	c.Reason, c.Condenser = j.due.Need.Reason, j.name
	return c.Condensation
}

// job begins a condensation by a rolling condenser, which has no cut yet.
func (s Settings) job(name string, in Input) job {
	return job{Settings: s, name: name, in: in, due: s.Due(in)}
}

// decide is the decision to run a job, if something is due and its condenser finds a cut for it.
func (j *job) decide(run Job, cut func() Kept) Decision {
	if j.due.Need.Reason == "" {
		return Decision{Kept: j.due.Kept}
	}
	if kept := cut(); kept != "" {
		return Decision{Kept: kept}
	}
	return Decision{Job: run}
}

// shrink takes the cut that leaves room for a summary of that size.
func (j *job) shrink(summary session.Size) (kept Kept) {
	var ok bool
	if j.cut, ok = j.cutFor(summary); !ok {
		return KeptUncut
	}
	return ""
}

// cutFor finds what to forget so that the view comes down to the target, leaving room for a summary of the given size, which
// replaces the one that the view shows. Of the size zero there is none: what the view shows stays. It reports false if
// there is nothing to forget, or too little: less than the minimum progress, or no more tokens than the summary would add.
func (j *job) cutFor(summary session.Size) (Cut, bool) {
	p := j.picker(summary)
	p.tail(j.due.Target)
	return j.worthwhile(p, summary)
}

// picker has picked what every rolling strategy keeps: what is protected, and the head.
func (j *job) picker(summary session.Size) *picker {
	p := newPicker(&j.in, j.in.Measure(j.in.View.Items))
	p.kept = summary
	if summary == (session.Size{}) {
		p.summaries()
	}
	p.protect()
	p.head(j.KeepFirst, j.due.Target)
	return p
}

// worthwhile forgets what was not picked, if enough goes, net of the summary, in one of the dimensions that the cut is about.
func (j *job) worthwhile(p *picker, summary session.Size) (Cut, bool) {
	c, ok := p.cut()
	after := c.with(summary)
	switch {
	case !ok || after.Tokens >= c.Before.Tokens:
		return Cut{}, false
	case j.due.Need.Reason == session.ReasonOverflow: // upstream has refused what is there: any progress is better
		return c, true
	}
	progress := func(before, after int) bool {
		return after < before && float64(before-after) >= j.MinimumProgress*float64(before)
	}
	return c, j.due.Events && progress(c.Before.Events, after.Events) || j.due.Tokens && progress(c.Before.Tokens, after.Tokens)
}
