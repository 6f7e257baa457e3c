package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/lesson"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxReliefs is how many times a request that overflowed is made smaller and sent again.
const maxReliefs = 3

// ErrRefused is reported when a condensation is given up because upstream refused the request with it.
var ErrRefused = errors.New("upstream refused the condensed request")

// relief is what a turn has learnt from upstream's refusals, and what it does about them.
type relief struct {
	tries       int
	ours        int         // our count of the request that was refused; 0 if upstream gave no count
	theirs      int         // upstream's count of it; 0 likewise
	files       int         // the part of ours that is messages with images or files
	alternates  bool        // upstream refused this request because roles did not alternate
	verbatim    bool        // upstream refused the changed request, so the client's body is forwarded unchanged
	strippedTo  int         // upstream refused sealed reasoning, which is stripped up to this position; 0: not stripped
	refused     bool        // upstream refused a change made to this request
	doubted     bool        // upstream failed on the changed request, perhaps because of the change
	withheld    *projection // the view that upstream would refuse again, as it did earlier; nil: none
	onTrial     bool        // condensations are made on trial
	minReserve  bool        // reserve little for the answer: the client set no limit, and the request does not fit otherwise
	trial       []Attempt   // condensations that are shown, and logged once upstream accepts them
	beforeTrial projection  // the view without them
	window      int         // the window that upstream reported, or that the refused request exceeded; 0: neither is known
}

// Relieve shrinks a request that overflowed upstream's context window. Its condensations are on trial until Settle. It reports whether the
// request is now smaller, and is to be sent again.
func (t *Turn) Relieve(ctx context.Context, over overflow.Overflow) (report Report, smaller bool) {
	if over.ByOutput {
		return report, false
	}
	defer func() {
		isSummary := func(a Attempt) bool { return a.Made.Made() == session.MadeSummary }
		if !smaller && slices.ContainsFunc(t.relief.trial, isSummary) {
			t.noteQuirk(refusesSummaries, t.alone())
		}
	}()
	if !t.mayShrink() {
		return report, false
	}
	t.awaitLog()
	before := t.Sent()
	if !t.learnOverflow(over, before) {
		return report, false
	}
	if t.relief.withheld != nil { // the request is too long without it
		t.show(*t.relief.withheld)
		t.relief.withheld, t.relief.verbatim, t.relief.refused = nil, false, false
	}
	if t.relief.tries == 0 {
		t.relief.beforeTrial = t.shown
	}
	t.relief.tries++
	ctx, done := t.announce(ctx, condense.Need{Reason: session.ReasonOverflow, Hard: true})
	report, _ = t.runFlight(ctx, session.ReasonOverflow, func(ctx context.Context, c *Turn, report *Report) {
		c.relief.onTrial = true
		c.shrink(ctx, report)
		c.relief.onTrial = false
	})
	done()
	t.relief.onTrial = false // it may be set in a checkpoint
	return report, t.size().Tokens < before.Tokens
}

// mayShrink reports whether the request may be made smaller after an overflow.
func (t *Turn) mayShrink() bool {
	fixed := t.in.Wish == WishOff || t.in.Tenant.Observe || t.relief.verbatim && t.relief.withheld == nil
	return !fixed && t.relief.tries < maxReliefs && t.in.Tenant.Condenser.Name() != (condense.Noop{}).Name()
}

// MayRetry reports whether the request could be sent again in another form if upstream refused it.
func (t *Turn) MayRetry() bool { return t.mayShrink() || t.changed() || t.mayBeBound() }

// learnOverflow learns the model's window from an overflow, for this turn. It reports whether the request can be too long at all: a
// smaller history does not cure an error about something else.
func (t *Turn) learnOverflow(over overflow.Overflow, sent session.Size) bool {
	if over.Prompt > 0 && !over.AtLeast && sent.Tokens > 0 {
		ratio := float64(over.Prompt) / float64(sent.Tokens)
		if t.shown.attached && ratio > 1 || ratio <= maxCountRatio && ratio >= 1/maxCountRatio {
			t.relief.ours, t.relief.theirs, t.relief.files = sent.Tokens, over.Prompt, t.fileTokens()
		}
	}
	ours := max(t.calibrate(sent.Tokens), t.relief.theirs)
	if t.shown.attached {
		ours = max(ours, sent.Tokens) // the calibration may come from smaller files
	}
	if over.Limit > 0 && !t.shown.attached && maxCountRatio*float64(ours+t.reserved()) < float64(over.Limit) {
		return false
	}
	window, whole := over.Limit, ours+t.reserved()
	t.relief.window = window
	switch {
	case window == 0:
		window = ours * 9 / 10 // smaller than what was sent
		t.relief.window = ours
	case whole <= window: // upstream counts more than we do, and does not say how many
		window = whole * 9 / 10
		if !t.shown.attached {
			t.relief.window = whole
		}
	case t.model.Configured && window < t.model.Window: // trust the configuration rather than the error
		window = ours / 2
	}
	if t.model.Window == 0 || window < t.model.Window {
		t.model.Window = window
	}
	return true
}

// maxCountRatio is the largest believable ratio between upstream's token count and ours, either way.
const maxCountRatio = 4.0

// shrink makes the view fit if it can. If the newest results alone are too long for any condensation to help, it cuts those. Otherwise
// it tries the tenant's condenser, then a condensation without a summary, then cutting results as well. As a last resort it does so
// again with less room reserved for the answer.
func (t *Turn) shrink(ctx context.Context, report *Report) {
	if t.showAbridged(ctx) && t.fits() {
		return
	}
	in := t.input(condense.Need{Reason: session.ReasonOverflow, Hard: true})
	fits := condense.Essential(in) > condense.Room(in) && t.shorten(ctx, false, report) ||
		t.condenseHard(ctx, t.in.Tenant.Condenser, true, report) ||
		t.condenseHard(ctx, condense.ConversationWindow{}, false, report) ||
		t.shorten(ctx, false, report) ||
		t.shorten(ctx, true, report)
	if fits || t.in.Split.MaxOutput > 0 {
		return
	}
	t.relief.minReserve = true
	if !t.fits() && !t.shorten(ctx, false, report) {
		t.shorten(ctx, true, report)
	}
}

// fits reports whether the request should fit upstream's window.
func (t *Turn) fits() bool {
	in := t.input(t.requested())
	return in.Total <= condense.Room(in)
}

// condenseHard condenses a request that upstream refused for its length, and reports whether it should fit now.
func (t *Turn) condenseHard(ctx context.Context, c condense.Condenser, locked bool, report *Report) bool {
	inVain := t.hasQuirk(refusesSummaries, t.alone()) // no further summary is paid for
	d := c.Condense(t.input(condense.Need{Reason: session.ReasonOverflow, Hard: true, AtOnce: inVain}))
	if d.Job != nil && t.applyJob(ctx, d.Job, locked, report) {
		if shape := t.in.Tenant.Condenser.Condense(t.input(t.requested())); shape.View != nil {
			t.show(t.reshaped(*shape.View, math.MaxInt))
		}
	}
	return t.fits()
}

// shorten cuts tool results, the newest or all of them, if that makes the request fit. It reports whether it does.
func (t *Turn) shorten(ctx context.Context, all bool, report *Report) bool {
	job := condense.Shorten(t.input(t.requested()), all)
	return job != nil && t.applyJob(ctx, job, !t.relief.onTrial, report) && t.fits()
}

// showOnTrial shows a condensation that is not logged yet.
func (t *Turn) showOnTrial(a Attempt) {
	c := t.withSizes(*a.Made)
	c.ID = session.CondensationID{Thread: t.place.Thread.ID, Seq: math.MaxUint64 - uint64(len(t.shown.applied))} // beyond any log
	t.relief.trial = append(slices.Clip(t.relief.trial), a)
	t.show(t.project(append(slices.Clip(t.shown.applied), c)))
}

// ForwardVerbatim makes the turn forward the client's body unchanged, because upstream refused the changed one. It reports whether there was
// a change.
func (t *Turn) ForwardVerbatim() (report Report, again bool) {
	if !t.changed() {
		return report, false
	}
	t.relief.verbatim, t.relief.refused, t.relief.strippedTo = true, true, 0
	reason := session.ReasonOverflow
	if n := len(t.shown.applied); n > 0 {
		reason = t.shown.applied[n-1].Reason
	}
	t.attempted(&report, Attempt{Reason: reason, Err: ErrRefused})
	return report, true
}

// FailureKept is how long unchanged bodies are not tried for a client after upstream failed on both forms of a request.
const FailureKept = time.Minute

// DoubtChange is ForwardVerbatim for a failure, with this status, that the change may not have caused. The unchanged body is tried
// once, if it should fit, and not while upstream fails on unchanged requests as well. A 5xx, which may have passed, is not remembered.
func (t *Turn) DoubtChange(status int) (report Report, again bool) {
	whole := t.inputFor(condense.Need{}, t.counted().fixed, t.Before().Tokens)
	if t.relief.doubted || t.hasQuirk(failsUnchanged, lesson.Place{Own: t.counter.source}) || overWindow(whole) {
		return report, false
	}
	if report, again = t.ForwardVerbatim(); again {
		t.forwardAsAccepted() // Relieve shows the view again if the unchanged body is too long
		t.hidden.tail, t.relief.doubted, t.relief.refused = nil, true, status < 500
	}
	return report, again
}

// NoteFailure is called before Settle with the status of upstream's failure. If it failed by itself, unchanged bodies are not tried for a while.
func (t *Turn) NoteFailure(status int) {
	if t.relief.doubted && status/100 == 5 {
		t.noteQuirk(failsUnchanged, lesson.Place{Own: t.counter.source})
	}
}

// Settle must be called once upstream has accepted the request or refused it for the last time. It logs the condensations on trial, and
// remembers what was learnt, if they helped, and drops them otherwise.
func (t *Turn) Settle(ctx context.Context, taken bool) (report Report) {
	r := &t.relief
	trial := r.trial
	r.trial = nil
	if taken {
		t.rememberAccepted()
	}
	if !taken || r.verbatim {
		t.dropTrial(trial, &report)
		return report
	}
	if len(trial) > 0 {
		t.logTrial(ctx, trial, &report)
	}
	if t.hidden.withdrawn {
		t.noteQuirk(refusesTools, t.lessons())
	}
	if r.alternates {
		t.noteQuirk(alternatesOnly, t.lessons())
	}
	if r.tries > 0 && r.window > 0 {
		t.rememberWindow(r.window, &report)
	}
	t.engine.o.Tokens.Observe(t.calibration(r.files > 0), r.ours, r.theirs, r.files > 0)
	return report
}

// rememberAccepted remembers in which form upstream accepted the request, for the next one of the thread.
func (t *Turn) rememberAccepted() {
	r, m, id := &t.relief, t.engine.memory, t.place.Thread.ID
	m.quirks[refusesSummaries].Forget(t.alone())
	switch {
	case r.refused:
		m.refused.Add(t.conversation(), refusal{t.engine.o.Now(), t.openLoop()})
	case t.changed():
		m.refused.Remove(t.conversation())
	}
	if r.strippedTo > 0 {
		m.stripTo.Add(id, r.strippedTo)
	}
	if !t.changed() && t.mayBeBound() && t.purpose != session.PurposeCompaction {
		m.verbatim.Add(id, t.history.Len()+1)
	}
}

// dropTrial drops condensations on trial that did not help.
func (t *Turn) dropTrial(trial []Attempt, report *Report) {
	for _, a := range trial {
		t.attempted(report, Attempt{Reason: a.Reason, Err: ErrRefused, Cost: a.Cost})
	}
}

// Unanswered is called instead of Settle if no answer came, or only a failure that says nothing about the request. It logs the condensations
// on trial that have a summary, since a retry would pay for them again, and drops the others.
func (t *Turn) Unanswered(ctx context.Context) (report Report) {
	paid := slices.DeleteFunc(slices.Clone(t.relief.trial), func(a Attempt) bool { return a.Made.Made() != session.MadeSummary })
	t.relief.trial = nil
	switch {
	case t.relief.verbatim:
		t.dropTrial(paid, &report)
	case len(paid) > 0:
		t.logTrial(ctx, paid, &report)
	}
	return report
}

// logTrial logs the condensations on trial, even if the client has left. The view that is forwarded does not change. It needs no lock: of two
// condensations, the first one logged counts, and upstream has accepted these.
func (t *Turn) logTrial(ctx context.Context, trial []Attempt, report *Report) {
	forwarded := t.shown
	ctx = context.WithoutCancel(ctx)
	if err := t.logNew(ctx); err != nil {
		t.attempted(report, Attempt{Reason: trial[0].Reason, Err: err})
		return
	}
	t.show(t.relief.beforeTrial)
	for _, a := range trial {
		if err := t.logAndShow(ctx, a, false, report); err != nil {
			t.attempted(report, a.failed(err))
			break
		}
	}
	forwarded.seen = t.shown.seen
	t.show(forwarded)
}

// RefusalKept is how long a thread's history is forwarded unchanged after upstream has refused it condensed, and no summary is paid for
// after it has refused that for its length.
const RefusalKept = 10 * time.Minute

// refusal records that upstream refused a thread's condensed history and then accepted the unchanged one.
type refusal struct {
	at   time.Time
	loop int // start of the open tool loop whose reasoning was needed: the refusal may be about that loop only; 0: there was none
}

// conversation names the thread's requests to this model.
func (t *Turn) conversation() source { return t.sourceOf("thread " + string(t.place.Thread.ID)) }

// alone is the place for what holds for the conversation and no other.
func (t *Turn) alone() lesson.Place { return lesson.Place{Own: t.conversation()} }

// refusedRecently reports whether upstream refused the thread's condensed history recently, and the history fits unchanged.
func (t *Turn) refusedRecently() bool {
	r, known := t.engine.memory.refused.Get(t.conversation())
	if !known || t.in.Wish == WishNow || t.engine.o.Now().Sub(r.at) >= RefusalKept {
		return false
	}
	whole := t.inputFor(condense.Need{}, t.counted().fixed, t.Before().Tokens)
	return (r.loop == 0 || r.loop == t.openLoop()) && !overWindow(whole)
}

// forwardAsAccepted withholds the view and forwards the client's history in the form that upstream accepts: without condensations, and
// without the sealed reasoning that it has refused.
func (t *Turn) forwardAsAccepted() {
	withheld := t.shown
	t.show(t.project(nil))
	t.relief.withheld, t.relief.verbatim = &withheld, true
}

// StripReasoning strips the sealed reasoning from a request that upstream refused, and reports whether that makes a difference. It strips the
// changed history if upstream objected to reasoning: its client may have edited or left out what the reasoning is bound to. It strips the
// unchanged history if that may be bound to a condensed one. An open tool loop that needs its reasoning keeps it, or with unbind as much of it
// as upstream demands, and upstream is asked to drop what is bound to another history.
func (t *Turn) StripReasoning(objected, unbind bool) bool {
	changed := t.changed()
	switch {
	case t.remote(), changed && !objected:
		return false
	case !changed && (t.relief.strippedTo > 0 || !t.mayBeBound() && !t.hasUnloggedAnswers()):
		return false
	}
	p, end, sent := t.shown, t.stripEnd(unbind), t.shown.strippedCount()
	p.view.Items = slices.Clone(p.view.Items)
	if !changed {
		p = t.project(nil)
		if t.relief.withheld == nil {
			sent = 0 // of the client's own body
		}
	}
	t.stripBefore(p.view.Items, end)
	t.keepLoopReasoning(&p)
	if p.strippedCount() == sent {
		return false
	}
	t.show(p)
	t.relief.verbatim, t.relief.strippedTo = !changed, min(end-1, t.history.Len())
	return true
}

// strippedCount returns how many messages a projection shows without their sealed reasoning, or with reasoning that upstream may drop.
func (p *projection) strippedCount() (n int) {
	for i := range p.view.Items {
		if p.view.Items[i].Strip || p.view.Items[i].Loose {
			n++
		}
	}
	return n
}

// stripEnd returns the position from which sealed reasoning is kept: the start of the open tool loop that needs it, if there is one and upstream
// is not asked to drop reasoning.
func (t *Turn) stripEnd(unbind bool) int {
	_, can := t.in.Dialect.(dialect.Unbinder)
	if loop := t.openLoop(); loop > 0 && !(unbind && can) {
		return loop
	}
	return math.MaxInt
}

// mayBeBound reports whether the thread's answers may be bound to a condensed history, even if the tenant's requests now pass unchanged.
func (t *Turn) mayBeBound() bool { return len(t.place.Thread.Condensations)+len(t.hidden.asides) > 0 }

// hasUnloggedAnswers reports whether the history has sealed answers to requests that the log does not hold, because the store was
// unavailable or has lost them. Those requests may have been condensed.
func (t *Turn) hasUnloggedAnswers() bool {
	if t.engine.memory.stripTo.Contains(t.place.Thread.ID) {
		return true
	}
	missing := 0
	for i := range t.in.Split.Messages {
		if t.in.Split.Messages[i].Sealed && t.history.Pos(i) > t.place.Logged {
			missing++
		}
	}
	return missing > 1 || missing == 1 && t.place.New // the answer to a logged request arrives with the next request
}

// StripReasoning is Turn.StripReasoning for a request whose thread is not known, and so may have been condensed before: it returns the body without its
// sealed reasoning, nil if that makes no difference, and the header that it needs; empty if none.
func (e *Engine) StripReasoning(d dialect.Dialect, split *dialect.Request, unbind bool) (body [][]byte, name, value string) {
	t := &Turn{engine: e, in: Input{Tenant: &Tenant{}, Dialect: d, Split: split}, history: session.NewHistory(session.Hash{}, split.Messages)}
	t.place.New = true
	t.show(t.project(nil))
	if !t.StripReasoning(true, unbind) {
		return nil, "", ""
	}
	name, value = t.Unbinding()
	return t.Forwarded(), name, value
}
