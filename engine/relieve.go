package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
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
	settled := t.in.Wish == WishOff || t.in.Tenant.Observe || t.relief.asItCame && t.relief.recalled == nil
	if over.ByOutput || settled || t.relief.tries == reliefs || t.in.Tenant.Condenser.Name() == (condense.Noop{}).Name() {
		return r
	}
	t.awaitLog()
	before := t.Sent()
	if !t.learn(over, before) {
		return r
	}
	if aside := t.relief.recalled; aside != nil { // the request is too long without it
		t.show(*aside)
		t.relief.recalled, t.relief.asItCame = nil, false
	}
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
	if over.Limit > 0 && !t.shown.attached && believed*float64(ours+t.reserved()) < float64(over.Limit) {
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
	if condense.Essential(in) > condense.Room(in) && t.shorten(ctx, false, report) ||
		t.condenseHard(ctx, t.in.Tenant.Condenser, true, report) || t.condenseHard(ctx, condense.ConversationWindow{}, false, report) ||
		t.shorten(ctx, false, report) || t.shorten(ctx, true, report) || t.in.Split.MaxOutput > 0 {
		return
	}
	t.relief.tight = true
	_ = t.fits() || t.shorten(ctx, false, report) || t.shorten(ctx, true, report)
}

// fits reports whether the request should fit upstream's window.
func (t *Turn) fits() bool {
	in := t.input(t.wanted())
	return in.Total <= condense.Room(in)
}

// condenseHard condenses because upstream refused the request for its length, and reports whether it should fit now.
func (t *Turn) condenseHard(ctx context.Context, c condense.Condenser, locked bool, report *Report) bool {
	d := c.Condense(t.input(condense.Need{Reason: session.ReasonOverflow, Hard: true}))
	if d.Job != nil && t.runJob(ctx, d.Job, locked, report) {
		if shape := t.in.Tenant.Condenser.Condense(t.input(t.wanted())); shape.View != nil {
			t.show(t.reshaped(*shape.View, math.MaxInt))
		}
	}
	return t.fits()
}

// shorten shows tool results in part, those that have just come or all, if that makes the request fit.
func (t *Turn) shorten(ctx context.Context, all bool, report *Report) bool {
	job := condense.Shorten(t.input(t.wanted()), all)
	return job != nil && t.runJob(ctx, job, !t.relief.trying, report) && t.fits()
}

// try shows a condensation that is not logged yet.
func (t *Turn) try(a Attempt) {
	c := t.measured(*a.Made)
	c.ID = session.CondensationID{Thread: t.place.Thread.ID, Seq: math.MaxUint64 - uint64(len(t.shown.applied))} // no log is as long
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
	r, m, now := &t.relief, t.engine.memory, t.engine.o.Now()
	trial := r.trial
	r.trial = nil
	if taken {
		t.learnTaken()
	}
	if !taken || r.asItCame {
		for _, a := range trial {
			t.attempted(&report, Attempt{Reason: a.Reason, Err: ErrRefused, Cost: a.Cost})
		}
		return report
	}
	if len(trial) > 0 {
		t.keep(ctx, trial, &report)
	}
	if t.hidden.withdraw {
		m.toolless.Add(t.counter.source, now)
	}
	if r.alternates {
		m.alternates.Add(t.shared(), now)
	}
	if r.tries > 0 && r.window > 0 {
		t.keepWindow(r.window, &report)
	}
	t.engine.o.Tokens.Observe(t.corrector(r.files > 0), r.ours, r.theirs, r.files > 0)
	return report
}

// learnTaken remembers how upstream took the request, for the thread's next one.
func (t *Turn) learnTaken() {
	r, m, id := &t.relief, t.engine.memory, t.place.Thread.ID
	switch {
	case r.refused:
		m.refused.Add(t.conversation(), refusal{t.engine.o.Now(), t.input(condense.Need{}).Loop()})
	case t.changed():
		m.refused.Remove(t.conversation())
	}
	if r.bared > 0 {
		m.lost.Add(id, r.bared)
	}
	if !t.changed() && t.condensed() && t.purpose != session.PurposeCompaction {
		m.raw.Add(id, t.history.Len()+1)
	}
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

// RefusalKept is how long what upstream refused of a thread is not tried again.
const RefusalKept = 10 * time.Minute

// refusal is one of a thread's condensed history, which upstream then took as it came.
type refusal struct {
	at   time.Time
	loop int // where the open tool loop began that needed its reasoning: the refusal may be about that alone; 0: there was none
}

// conversation names the thread's requests to the model.
func (t *Turn) conversation() source { return t.sourceOf("thread " + string(t.place.Thread.ID)) }

// refused reports whether upstream refused the thread's condensed history a short while ago, and the history fits as it came.
func (t *Turn) refused() bool {
	r, known := t.engine.memory.refused.Get(t.conversation())
	if !known || t.in.Wish == WishNow || t.engine.o.Now().Sub(r.at) >= RefusalKept {
		return false
	}
	whole := t.inputOf(condense.Need{}, t.counted().fixed, t.Before().Tokens)
	return (r.loop == 0 || r.loop == whole.Loop()) && !overWindow(whole)
}

// recall has the body go at once as upstream took the thread's last one: as it came, without the sealed reasoning that it refused.
func (t *Turn) recall() {
	aside := t.shown
	t.show(t.project(nil))
	t.relief.recalled, t.relief.asItCame = &aside, true
}

// Bare has a body that upstream refused as it came forwarded without its sealed reasoning: what was answered to a condensed history
// is bound to that. It reports whether that makes a difference. An open tool loop that needs its reasoning keeps its own.
func (t *Turn) Bare() bool {
	if t.relief.bared > 0 || t.changed() || t.remote() || !t.condensed() && !t.missed() {
		return false
	}
	p, end, sent := t.project(nil), endOfBonds(t.input(condense.Need{})), 0
	if t.relief.recalled != nil {
		sent = t.shown.bared()
	}
	t.bare(p.view.Items, end)
	if p.bared() == sent {
		return false
	}
	t.show(p)
	t.relief.asItCame, t.relief.bared = true, min(end-1, t.history.Len())
	return true
}

// bared is how many messages a projection shows without their sealed reasoning.
func (p *projection) bared() (n int) {
	for i := range p.view.Items {
		if p.view.Items[i].Strip {
			n++
		}
	}
	return n
}

// endOfBonds is the position from which sealed reasoning stays: that of the open tool loop that needs it, if there is one.
func endOfBonds(in condense.Input) int {
	if loop := in.Loop(); loop > 0 {
		return loop
	}
	return math.MaxInt
}

// condensed reports whether the thread's answers may be bound to a condensed history. The tenant's requests may pass as they come by now.
func (t *Turn) condensed() bool { return len(t.place.Thread.Condensations)+len(t.hidden.asides) > 0 }

// missed reports whether the history has answers with sealed reasoning to requests that the log does not hold, since the store was away
// or has lost them: those may have been condensed.
func (t *Turn) missed() bool {
	if t.engine.memory.lost.Contains(t.place.Thread.ID) {
		return true
	}
	missing := 0
	for i := range t.in.Split.Messages {
		if t.in.Split.Messages[i].Sealed && t.history.Pos(i) > t.place.Logged {
			missing++
		}
	}
	return missing > 1 || missing == 1 && t.place.New // of a request that is held, the answer comes with the next
}

// Bare is a request's body without its sealed reasoning, for one that upstream refused as it came and whose thread is not known: it
// may have been condensed before. It is nil where that makes no difference. An open tool loop that needs its reasoning keeps its own.
func Bare(d dialect.Dialect, split *dialect.Request) [][]byte {
	view := session.View{History: session.NewHistory(session.Hash{}, split.Messages)}
	end := endOfBonds(condense.Input{View: &view, NeedsReasoning: split.NeedsReasoning})
	messages, bared := make([][]byte, len(split.Messages)), false
	for i, m := range split.Messages {
		messages[i] = m.Raw
		if !m.Sealed || view.History.Pos(i) >= end {
			continue
		}
		if raw, err := d.StripReasoning(m.Raw); err == nil {
			messages[i], bared = raw, true
		}
	}
	if !bared {
		return nil
	}
	return d.Join(split, messages)
}
