package engine

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Reliefs is how many times a request that overflowed is condensed and sent again.
const Reliefs = 3

// Relief is what was done about an overflow.
type Relief struct {
	Smaller bool // the request is to be sent again
	Report  Report

	tooMany int // tokens that upstream did not take, before calibration; 0: it said how many it takes
}

// Relieve makes a request smaller that overflowed upstream's context window.
func (t *Turn) Relieve(ctx context.Context, over overflow.Overflow) (r Relief) {
	if over.ByOutput || t.unchanged() {
		return r
	}
	t.awaitLog()
	before := t.size()
	t.learn(over, before, &r.Report)
	ctx, told := t.condensing(ctx, condense.Need{Reason: session.ReasonOverflow, Hard: true})
	report, _ := t.fly(ctx, session.ReasonOverflow, func(ctx context.Context, c *Turn, report *Report) { c.shrink(ctx, report) })
	told()
	r.Report.Attempts, r.Report.Panic = report.Attempts, report.Panic
	r.Smaller = t.size().Tokens < before.Tokens
	if over.Limit == 0 {
		r.tooMany = before.Tokens
	}
	return r
}

// Relieved takes note that upstream took what a relief made of the request. It was thus too long before, which is learnt
// where upstream did not say how long it may be.
func (t *Turn) Relieved(r Relief) (report Report) {
	if r.tooMany > 0 {
		t.keepWindow(t.adjust(r.tooMany), &report)
	}
	return report
}

// shrink makes the view smaller by all means.
func (t *Turn) shrink(ctx context.Context, report *Report) {
	t.condenseHard(ctx, report)
	if in := t.input(t.wanted()); !fits(in, in.Total) {
		t.trimHard(ctx, report)
	}
}

// condenseHard condenses because upstream refused the request for its length.
func (t *Turn) condenseHard(ctx context.Context, report *Report) {
	need := condense.Need{Reason: session.ReasonOverflow, Hard: true}
	decision := t.in.Tenant.Condenser.Condense(t.input(need))
	if decision.Job == nil || !t.runJob(ctx, decision.Job, true, report) {
		return
	}
	if shape := t.in.Tenant.Condenser.Condense(t.input(t.wanted())); shape.View != nil {
		t.show(t.reshaped(*shape.View))
	}
}

// fits reports whether a request of so many tokens should fit upstream's window.
func fits(in condense.Input, total int) bool { return total+min(in.Reserved, in.Window/2) <= in.Window }

// The lengths, in characters, to which newly arrived tool results are cut when nothing else is left to forget.
const (
	longestTrim  = 16000
	shortestTrim = 500
)

// trimHard cuts the tool results that have just come, as little as makes the view fit: they are all that is left.
func (t *Turn) trimHard(ctx context.Context, report *Report) {
	in := t.input(t.wanted())
	var last condense.Job
	for length := longestTrim; length >= shortestTrim; length /= 2 {
		job := condense.ToolOutputTrim{MaxEventLength: length}.Condense(in).Job
		if job == nil {
			continue
		}
		last = job
		if result, err := job.Run(ctx); err == nil && fits(in, result.Condensation.After.Tokens) {
			break
		}
	}
	if last != nil {
		t.runJob(ctx, last, false, report)
	}
}

// learn takes what an overflow tells of the model: for this turn, and, where upstream named its window, for those to come.
func (t *Turn) learn(over overflow.Overflow, sent session.Size, report *Report) {
	if over.Prompt > 0 && !over.AtLeast && sent.Tokens > 0 {
		t.engine.o.Tokens.Observe(t.in.Split.Model, sent.Tokens, over.Prompt)
		t.scale = float64(over.Prompt) / float64(sent.Tokens)
	}
	window := over.Limit
	if window == 0 {
		window = t.adjust(sent.Tokens) * 9 / 10 // it is less than what was sent
	}
	if t.model.Window == 0 || window < t.model.Window {
		t.model.Window = window
	}
	if over.Limit > 0 {
		t.keepWindow(over.Limit, report)
	}
}

// keepWindow remembers a window for turns to come.
func (t *Turn) keepWindow(window int, report *Report) {
	t.engine.learnt.set(t.in.Tenant.Name, t.in.Split.Model, window, t.engine.o.Now())
	report.Window = window
}
