package engine

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reliefs is how many times a request that overflowed is made smaller and sent again.
const reliefs = 3

// ErrRefused is why a request went on without what was condensed: upstream refused it all the same.
var ErrRefused = errors.New("upstream refused the condensed request")

// relief is what a turn has learnt of upstream's refusals, and done about them.
type relief struct {
	tries      int
	ours       int         // our count of what was refused, and
	theirs     int         // upstream's, where it told; both 0 where it did not
	files      int         // what of ours is messages with images or files
	alternates bool        // upstream refused this request because roles did not alternate
	asItCame   bool        // upstream refused what was changed, so that the body goes as it came
	bared      int         // and refused that, too, so that it goes without the sealed reasoning up to that position; 0: with it
	refused    bool        // upstream refused what was changed of this request
	recalled   *projection // put aside, since upstream would refuse it as it did before; nil: none is
	trying     bool        // what is condensed is on trial
	tight      bool        // little room is left for the answer: the client asked for none, and else the request cannot fit
	trial      []Attempt   // condensations that are shown, and logged once upstream takes them
	before     projection  // the view without them
	window     int         // that upstream told of, or that it showed not to have; 0: neither
}

// Relief is what was done about an overflow.
type Relief struct {
	Smaller bool // the request is to be sent again
	Report  Report
}

// Relieve makes a request smaller that overflowed upstream's context window. What it condenses is on trial until Settle.
func (t *Turn) Relieve(ctx context.Context, over overflow.Overflow) (r Relief) {
	if over.ByOutput || t.settled() || t.relief.tries == reliefs || t.in.Tenant.Condenser.Name() == (condense.Noop{}).Name() {
		return r
	}
	t.awaitLog()
	before := t.Sent()
	if !t.learn(over, before) {
		return r
	}
	t.takeUp()
	if t.relief.tries++; t.relief.tries == 1 {
		t.relief.before = t.shown
	}
	ctx, told := t.condensing(ctx, condense.Need{Reason: session.ReasonOverflow, Hard: true})
	r.Report, _ = t.fly(ctx, session.ReasonOverflow, func(ctx context.Context, c *Turn, report *Report) {
		c.relief.trying = true
		c.shrink(ctx, report)
		c.relief.trying = false
	})
	told()
	t.relief.trying = false
	r.Smaller = t.size().Tokens < before.Tokens
	return r
}

// learn takes what an overflow tells of the model, for this turn. It reports whether the request can be too long at all: an error
// about something else is not cured by a smaller history.
func (t *Turn) learn(over overflow.Overflow, sent session.Size) bool {
	if over.Prompt > 0 && !over.AtLeast && sent.Tokens > 0 {
		ratio := float64(over.Prompt) / float64(sent.Tokens)
		if t.shown.attached && ratio > 1 || ratio <= believed && ratio >= 1/believed {
			t.relief.ours, t.relief.theirs, t.relief.files = sent.Tokens, over.Prompt, t.fileTokens()
		}
	}
	ours := max(t.adjust(sent.Tokens), t.relief.theirs)
	if t.shown.attached {
		ours = max(ours, sent.Tokens) // the correction may be that of smaller files
	}
	if over.Limit > 0 && !t.shown.attached && believed*float64(ours+reserved(t.in.Split.MaxOutput, t.model)) < float64(over.Limit) {
		return false
	}
	window := over.Limit
	switch {
	case window == 0:
		window = ours * 9 / 10 // it is less than what was sent
		if !t.model.Configured {
			t.relief.window = ours
		}
	case t.model.Configured && window < t.model.Window: // the operator knows better than an error
		window = ours / 2
	default:
		t.relief.window = window
	}
	if t.model.Window == 0 || window < t.model.Window {
		t.model.Window = window
	}
	return true
}

// believed is how far upstream's count may be from ours.
const believed = 4.0

// shrink makes the view fit, if it can: by trimming the newest results where no condensation can make it fit and that alone does,
// else by the tenant's condenser, then without a summary, and at last by trimming results as well.
func (t *Turn) shrink(ctx context.Context, report *Report) {
	if t.abridge(ctx) && t.fits() {
		return
	}
	in := t.input(condense.Need{Reason: session.ReasonOverflow, Hard: true})
	if condense.Essential(in) > condense.Room(in) && t.shorten(ctx, false, report) {
		return
	}
	if t.condenseHard(ctx, t.in.Tenant.Condenser, true, report); t.fits() {
		return
	}
	if t.condenseHard(ctx, condense.ConversationWindow{}, false, report); t.fits() {
		return
	}
	if t.shorten(ctx, false, report) || t.shorten(ctx, true, report) || t.in.Split.MaxOutput > 0 {
		return
	}
	t.relief.tight = true
	if !t.fits() && !t.shorten(ctx, false, report) {
		t.shorten(ctx, true, report)
	}
}

// fits reports whether the request should fit upstream's window.
func (t *Turn) fits() bool {
	in := t.input(t.wanted())
	return in.Total <= condense.Room(in)
}

// condenseHard condenses because upstream refused the request for its length.
func (t *Turn) condenseHard(ctx context.Context, c condense.Condenser, locked bool, report *Report) {
	decision := c.Condense(t.input(condense.Need{Reason: session.ReasonOverflow, Hard: true}))
	if decision.Job == nil || !t.runJob(ctx, decision.Job, locked, report) {
		return
	}
	if shape := t.in.Tenant.Condenser.Condense(t.input(t.wanted())); shape.View != nil {
		t.show(t.reshaped(*shape.View, math.MaxInt))
	}
}

// shorten shows tool results in part, those that have just come or all, if that makes the request fit.
func (t *Turn) shorten(ctx context.Context, all bool, report *Report) bool {
	job := condense.Shorten(t.input(t.wanted()), all)
	return job != nil && t.runJob(ctx, job, !t.relief.trying, report) && t.fits()
}

// try shows a condensation that is not logged yet.
func (t *Turn) try(a Attempt) {
	c := t.measured(*a.Made)
	n := len(t.shown.applied)
	c.ID = session.CondensationID{Thread: t.place.Thread.ID, Seq: math.MaxUint64 - uint64(n)} // no log is as long
	if n > 0 {
		c.Base = t.shown.applied[n-1].ID
	}
	t.relief.trial = append(slices.Clip(t.relief.trial), a)
	t.show(t.project(append(slices.Clip(t.shown.applied), c)))
}

// Unchange has the body forwarded as it came, because upstream refused what was changed. It reports whether anything was.
func (t *Turn) Unchange() (report Report, again bool) {
	if !t.changed() {
		return report, false
	}
	t.relief.asItCame, t.relief.refused = true, true
	reason := session.ReasonOverflow
	if n := len(t.shown.applied); n > 0 {
		reason = t.shown.applied[n-1].Reason
	}
	t.attempted(&report, Attempt{Reason: reason, Err: ErrRefused})
	return report, true
}

// Settle ends what was done about refusals, when upstream has taken the request, or has refused it for the last time: what helped is
// logged and learnt, and what did not is forgotten.
func (t *Turn) Settle(ctx context.Context, taken bool) (report Report) {
	trial := t.relief.trial
	t.relief.trial = nil
	if taken {
		t.remember()
	}
	if taken && !t.changed() && t.condensed() && t.purpose != session.PurposeCompaction {
		t.engine.memory.raw.Add(t.place.Thread.ID, t.history.Len()+1)
	}
	switch {
	case !taken || t.relief.asItCame:
		for _, a := range trial {
			t.attempted(&report, Attempt{Reason: a.Reason, Err: ErrRefused, Cost: a.Cost})
		}
		return report
	case len(trial) > 0:
		t.keep(ctx, trial, &report)
	}
	if t.hidden.withdraw {
		t.engine.memory.toolless.Add(t.counter.source, t.engine.o.Now())
	}
	if t.relief.alternates {
		t.engine.memory.alternates.Add(t.shared(), t.engine.o.Now())
	}
	if t.relief.tries > 0 && t.relief.window > 0 {
		t.keepWindow(t.relief.window, &report)
	}
	t.engine.o.Tokens.Observe(t.corrector(t.relief.files > 0), t.relief.ours, t.relief.theirs, t.relief.files > 0)
	return report
}

// Unanswered ends what was done about refusals where no answer came. The summaries are logged, since a retry would pay for them again;
// what no model made is forgotten.
func (t *Turn) Unanswered(ctx context.Context) (report Report) {
	paid := slices.DeleteFunc(slices.Clone(t.relief.trial), func(a Attempt) bool { return a.Made.Made() != session.MadeSummary })
	t.relief.trial = nil
	if len(paid) > 0 && !t.relief.asItCame {
		t.keep(ctx, paid, &report)
	}
	return report
}

// keep logs the condensations that were on trial, although the client may have left. What is forwarded stays as it is.
func (t *Turn) keep(ctx context.Context, trial []Attempt, report *Report) {
	forwarded := t.shown
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	_, release, err := t.claim(limited, true)
	if err != nil {
		t.attempted(report, Attempt{Reason: trial[0].Reason, Err: err})
		return
	}
	defer release()
	t.show(t.relief.before)
	for _, a := range trial {
		if !t.write(ctx, a, false, report) {
			break
		}
	}
	forwarded.seen = t.shown.seen
	t.show(forwarded)
}
