package engine

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxReliefs is how many times a request that overflowed is made smaller and sent again.
const maxReliefs = 3

// ErrRefused is reported when a condensation is given up because upstream refused the request with it.
var ErrRefused = errors.New("upstream refused the condensed request")

// relief is what upstream's refusals of a request have taught, and what its form does about them.
type relief struct {
	tries        int
	ours         int         // our count of the request that was refused; 0 if upstream gave no count
	theirs       int         // upstream's count of it; 0 likewise
	files        int         // the part of ours that is messages with images or files
	alternates   bool        // upstream refused this request because roles did not alternate
	verbatim     bool        // upstream refused the changed request, so the client's body is forwarded unchanged
	strippedTo   int         // upstream refused sealed reasoning, which is stripped up to this position; 0: not stripped
	refused      bool        // upstream refused a change made to this request
	doubted      bool        // upstream failed on the changed request, perhaps because of the change
	tooLarge     int         // bytes of the body that upstream refused as too large; 0: it refused none
	withoutFiles bool        // old messages lost their images and files because upstream refused the request
	reasoning    reasoning   // how sealed reasoning is treated
	withdrawn    bool        // upstream refused the request with hidden tools
	withheld     *projection // the view that upstream would refuse again, as it did earlier; nil: none
	onTrial      bool        // condensations are made on trial
	minReserve   bool        // reserve little for the answer: the client set no limit, and the request does not fit otherwise
	trial        []Attempt   // condensations that are shown, and logged once upstream accepts them
	beforeTrial  *projection // the view without them; nil if there are none
	window       int         // the window that the request has to fit
	exceeded     int         // the window that upstream reported, or that the refused request exceeded; 0: neither is known
}

// Remedy is a way to make a request acceptable that upstream refused.
type Remedy string

// The remedies. Each is tried once for a request, but for Shrink, which is tried maxReliefs times.
const (
	DropFiles      Remedy = "drop_files"      // show old messages without their images and files
	Shrink         Remedy = "shrink"          // condense the history further, cut results, reserve less for the answer
	Alternate      Remedy = "alternate"       // let roles alternate
	WithdrawTools  Remedy = "withdraw_tools"  // offer no hidden tools
	KeepReasoning  Remedy = "keep_reasoning"  // leave sealed reasoning as it is: upstream does not know how to drop it
	PlaceReasoning Remedy = "place_reasoning" // treat sealed reasoning as bound to its place, although the model is known not to bind it
	Unseal         Remedy = "unseal"          // strip sealed reasoning, or ask upstream to drop what is bound to another history
	Verbatim       Remedy = "verbatim"        // forward the client's body unchanged
	OnTrial        Remedy = "on_trial"        // the same, where something else may be to blame
)

// remedy is a row of the table of remedies.
type remedy struct {
	Remedy
	cures func(overflow.Refusal) bool
	// plan returns what is to be done about a refusal of the form, and whether there is anything. It reads nothing but its arguments. If
	// there is nothing to be done, the form of the plan goes on to the next row.
	plan func(f *Form, r refusal) (plan, bool)
	last bool // if it does not help, nothing does, unless the reason for the refusal is uncertain
}

// refusal is why upstream refused a form, and what it has shown of itself before.
type refusal struct {
	overflow.Refusal
	failsUnchanged bool // it failed on an unchanged request of the client's after a changed one
	sizeKnown      bool // it has refused a body for its size
}

// refusal adds to r what upstream has shown before.
func (t *Turn) refusal(r overflow.Refusal) refusal {
	_, sizeKnown := t.engine.lessons.Size(t.lessons)
	return refusal{Refusal: r, failsUnchanged: t.engine.lessons.Has(lessons.FailsUnchanged, t.unshared()), sizeKnown: sizeKnown}
}

// plan is what a remedy does about a refusal.
type plan struct {
	form   *Form    // to send, or to make condensations on
	gaveUp *Attempt // the condensation that is given up; nil: none is

	work   formWork // makes the condensations that the remedy needs, on trial until the form is settled; nil: it needs none
	need   condense.Need
	helps  func(next *Form) bool // reports whether the form with the condensations may be accepted
	inVain bool                  // if it may not, no further summary of the conversation is paid for
}

// remedies returns all remedies, in the order in which they are tried.
func remedies() []remedy {
	return []remedy{
		{Remedy: Shrink, cures: func(r overflow.Refusal) bool { return r.Overflow != nil }, plan: shrunk, last: true},
		{Remedy: DropFiles, cures: overflow.Refusal.MayBeLarge, plan: withoutFiles},
		{Remedy: Shrink, cures: func(r overflow.Refusal) bool { return r.MayBeLarge() && !r.Files }, plan: shrunkBody},
		{Remedy: Alternate, cures: func(r overflow.Refusal) bool { return r.Alternates }, plan: alternating},
		{Remedy: WithdrawTools, cures: overflow.Refusal.Objects, plan: withoutTools},
		{Remedy: KeepReasoning, cures: overflow.Refusal.Objects, plan: untouched},
		{Remedy: PlaceReasoning, cures: overflow.Refusal.Objects, plan: placed},
		{Remedy: Unseal, cures: overflow.Refusal.Objects, plan: unsealed},
		{Remedy: Verbatim, cures: overflow.Refusal.Objects, plan: refusedChange},
		{Remedy: Verbatim, cures: overflow.Refusal.NotFound, plan: refusedHistory},
		{Remedy: OnTrial, cures: overflow.Refusal.MayObject, plan: doubtedChange},
	}
}

// Next returns the form to send instead of one that upstream refused; the report names the remedy. If there is none, the form that it returns
// goes on all the same.
func (f *Form) Next(ctx context.Context, r overflow.Refusal) (next *Form, report Report) {
	f = f.knowing()
	why := f.turn.refusal(r)
	for _, row := range remedies() {
		if !row.cures(r) {
			continue
		}
		p, helps := row.plan(f, why)
		if f = p.form; helps {
			f, helps = p.carryOut(ctx, &report)
		}
		if helps {
			report.Remedy = row.Remedy
			break
		}
		if row.last && f.turn.Recognised() && r.Overflow.Evidence == overflow.Stated {
			break
		}
	}
	return f, report
}

// carryOut makes the condensations of a plan and returns the form to send. It reports whether that may be accepted.
func (p *plan) carryOut(ctx context.Context, report *Report) (*Form, bool) {
	f := p.form
	if p.gaveUp != nil {
		f.attempted(report, *p.gaveUp)
	}
	if p.work == nil {
		return f, true
	}
	f.awaitLog()
	done := func([]session.Condensation) {}
	if p.need.Hard {
		ctx, done = f.announce(ctx, p.need)
	}
	next, step, _ := f.await(ctx, p.need.Reason, p.work)
	done(next.made[len(f.made):])
	report.add(step)
	helps := p.helps(next)
	isSummary := func(a Attempt) bool { return a.Made.Made() == session.MadeSummary }
	if !helps && p.inVain && slices.ContainsFunc(next.relief.trial, isSummary) {
		f.turn.engine.lessons.Learn(lessons.RefusesSummaries, f.alone(), true)
	}
	return next, helps
}

// shrunk is the remedy for a request that is too long for upstream.
func shrunk(f *Form, r refusal) (plan, bool) {
	if r.Overflow.ByOutput {
		return plan{form: f}, false
	}
	p, plausible := f.shrinking(*r.Overflow)
	p.inVain = true
	return p, plausible
}

// shrinking returns the plan that makes a request smaller after an overflow. It reports false if that is not possible, or would not help.
func (f *Form) shrinking(over overflow.Overflow) (plan, bool) {
	if !f.mayShrink() {
		return plan{form: f}, false
	}
	sent := f.Sent()
	f, plausible := f.learnOverflow(over, sent)
	if !plausible {
		return plan{form: f}, false
	}
	return plan{
		form: f.with(func(next *Form) {
			r := &next.relief
			if r.withheld != nil { // the request is too long without it
				next.shown = *r.withheld
				r.withheld, r.verbatim, r.refused = nil, false, false
			}
			if len(r.trial) == 0 {
				shown := next.shown
				r.beforeTrial = &shown
			}
			r.tries++
		}),
		work: func(ctx context.Context, f *Form, report *Report) *Form {
			f = f.with(func(next *Form) { next.relief.onTrial = true })
			return f.shrink(ctx, report).with(func(next *Form) { next.relief.onTrial = false })
		},
		need:  condense.Need{Reason: session.ReasonOverflow, Hard: true},
		helps: func(next *Form) bool { return next.size().Tokens < sent.Tokens },
	}, true
}

// mayShrink reports whether the request may be made smaller after an overflow.
func (f *Form) mayShrink() bool {
	fixed := f.asked.wish == WishOff || f.turn.in.Tenant.Observe || f.relief.verbatim && f.relief.withheld == nil
	return !fixed && f.relief.tries < maxReliefs && f.turn.in.Tenant.Condenser.Name() != (condense.Noop{}).Name()
}

// MayRetry reports whether the request could be sent again in another form if upstream refused it.
func (f *Form) MayRetry() bool {
	return f.mayShrink() || f.changed() || f.mayBeBound() || !f.turn.Recognised() && f.hasUnloggedAnswers()
}

// learnOverflow returns the form that has to fit the window which an overflow shows. It reports whether the request can be too long at all:
// a smaller history does not cure an error about something else.
func (f *Form) learnOverflow(over overflow.Overflow, sent session.Size) (*Form, bool) {
	counted := f.calibrate(sent.Tokens)
	if f.shown.attached {
		counted = max(counted, over.Prompt) // ours is an estimate
	}
	if !over.Believable(counted) {
		return f, false
	}
	if over.Prompt > 0 && !over.AtLeast && sent.Tokens > 0 {
		ratio := float64(over.Prompt) / float64(sent.Tokens)
		if f.shown.attached && ratio > 1 || ratio <= maxCountRatio && ratio >= 1/maxCountRatio {
			files := f.fileTokens()
			f = f.with(func(next *Form) {
				next.relief.ours, next.relief.theirs, next.relief.files = sent.Tokens, over.Prompt, files
			})
		}
	}
	ours := max(f.calibrate(sent.Tokens), f.relief.theirs)
	if f.shown.attached {
		ours = max(ours, sent.Tokens) // the calibration may come from smaller files
	}
	if over.Limit > 0 && !f.shown.attached && maxCountRatio*float64(ours+f.reserved()) < float64(over.Limit) {
		return f, false
	}
	window, exceeded, whole := over.Limit, over.Limit, ours+f.reserved()
	switch {
	case window == 0:
		window = ours * 9 / 10 // smaller than what was sent
		exceeded = ours
	case whole <= window: // upstream counts more than we do, and does not say how many
		window = whole * 9 / 10
		if !f.shown.attached {
			exceeded = whole
		}
	case f.turn.model.Configured && window < f.relief.window: // trust the configuration rather than the error
		window = ours / 2
	}
	return f.with(func(next *Form) {
		next.relief.exceeded = exceeded
		if next.relief.window == 0 || window < next.relief.window {
			next.relief.window = window
		}
	}), true
}

// maxCountRatio is the largest believable ratio between upstream's token count and ours, either way.
const maxCountRatio = 4.0

// shrink makes the view fit if it can. If the newest results alone are too long for any condensation to help, it cuts those. Otherwise
// it tries the tenant's condenser, then a condensation without a summary, then cutting results as well. As a last resort it does so
// again with less room reserved for the answer.
func (f *Form) shrink(ctx context.Context, report *Report) *Form {
	f, fits := f.abridged(ctx)
	if fits && f.fits() {
		return f
	}
	cut := func(all bool) func(*Form) (*Form, bool) {
		return func(f *Form) (*Form, bool) { return f.shorten(ctx, all, report) }
	}
	hard := func(c condense.Condenser, locked bool) func(*Form) (*Form, bool) {
		return func(f *Form) (*Form, bool) { return f.condenseHard(ctx, c, locked, report) }
	}
	steps := []func(*Form) (*Form, bool){hard(f.turn.in.Tenant.Condenser, true), hard(condense.ConversationWindow{}, false), cut(false), cut(true)}
	if in := f.input(condense.Need{Reason: session.ReasonOverflow, Hard: true}); condense.Essential(in) > condense.Room(in) {
		steps = slices.Insert(steps, 0, cut(false))
	}
	if f, fits = f.firstThatFits(steps); fits || f.turn.in.Split.MaxOutput > 0 {
		return f
	}
	f = f.with(func(next *Form) { next.relief.minReserve = true })
	f, _ = f.firstThatFits([]func(*Form) (*Form, bool){func(f *Form) (*Form, bool) { return f, f.fits() }, cut(false), cut(true)})
	return f
}

// firstThatFits takes steps, each on the form of the one before, until one reports that the request fits.
func (f *Form) firstThatFits(steps []func(*Form) (*Form, bool)) (_ *Form, fits bool) {
	for _, step := range steps {
		if f, fits = step(f); fits {
			break
		}
	}
	return f, fits
}

// fits reports whether the request should fit upstream's window.
func (f *Form) fits() bool {
	in := f.input(f.requested())
	return in.Total <= condense.Room(in)
}

// condenseHard condenses a request that upstream refused for its length, and reports whether it should fit now.
func (f *Form) condenseHard(ctx context.Context, c condense.Condenser, locked bool, report *Report) (*Form, bool) {
	inVain := f.turn.engine.lessons.Has(lessons.RefusesSummaries, f.alone()) // no further summary is paid for
	d := c.Condense(f.input(condense.Need{Reason: session.ReasonOverflow, Hard: true, AtOnce: inVain}))
	if d.Job != nil {
		next, changed := f.applyJob(ctx, d.Job, locked, report)
		if f = next; changed {
			f = f.shapedAnew()
		}
	}
	return f, f.fits()
}

// shapedAnew returns the form with the view that the tenant's condenser makes of it for this request, if it makes one.
func (f *Form) shapedAnew() *Form {
	shape := f.turn.in.Tenant.Condenser.Condense(f.input(f.requested()))
	if shape.View == nil {
		return f
	}
	return f.showing(f.reshaped(*shape.View, math.MaxInt))
}

// shorten cuts tool results, the newest or all of them, if that makes the request fit. It reports whether it does.
func (f *Form) shorten(ctx context.Context, all bool, report *Report) (*Form, bool) {
	job := condense.Shorten(f.input(f.requested()), all)
	if job == nil {
		return f, false
	}
	f, changed := f.applyJob(ctx, job, !f.relief.onTrial, report)
	return f, changed && f.fits()
}

// showingOnTrial returns the form that shows a condensation which is not logged yet.
func (f *Form) showingOnTrial(a Attempt) *Form {
	c := f.withSizes(*a.Made)
	c.ID = session.CondensationID{Thread: f.place.Thread.ID, Seq: math.MaxUint64 - uint64(len(f.shown.applied))} // beyond any log
	return f.with(func(next *Form) {
		next.relief.trial = append(slices.Clip(f.relief.trial), a)
		next.shown = f.project(append(slices.Clip(f.shown.applied), c))
	})
}

// alternating is the remedy for a changed request whose roles do not alternate.
func alternating(f *Form, _ refusal) (plan, bool) {
	if f.alternates() || !f.changed() {
		return plan{form: f}, false
	}
	shown := f.shown
	shown.view.Items = slices.Clone(shown.view.Items)
	f = f.with(func(next *Form) { next.relief.alternates = true })
	return plan{form: f.showing(f.turn.bind(shown, f.binding()))}, true
}

// withoutTools is the remedy for a request that offers hidden tools.
func withoutTools(f *Form, _ refusal) (plan, bool) {
	if !f.Offers() {
		return plan{form: f}, false
	}
	return plan{form: f.with(func(next *Form) { next.relief.withdrawn, next.calls.tail = true, nil })}, true
}

// refusedChange is the remedy for a changed request: the client's body unchanged.
func refusedChange(f *Form, _ refusal) (plan, bool) {
	if !f.changed() {
		return plan{form: f}, false
	}
	reason := session.ReasonOverflow
	if n := len(f.shown.applied); n > 0 {
		reason = f.shown.applied[n-1].Reason
	}
	return plan{
		form:   f.with(func(next *Form) { next.relief.verbatim, next.relief.refused, next.relief.strippedTo = true, true, 0 }),
		gaveUp: &Attempt{Reason: reason, Err: ErrRefused},
	}, true
}

// refusedHistory is refusedChange for a history that was sent although upstream keeps it: an item in it may not be found.
func refusedHistory(f *Form, r refusal) (plan, bool) {
	if !f.turn.remote() {
		return plan{form: f}, false
	}
	return refusedChange(f, r)
}

// fitsUnchanged reports whether the client's own body fits the window, as far as is known.
func (f *Form) fitsUnchanged() bool {
	return f.turn.remote() || !overWindow(f.inputFor(condense.Need{}, f.turn.counted().fixed, f.turn.Before().Tokens))
}

// doubtedChange is refusedChange for a failure that the change may not have caused. The unchanged body is tried once, if it should fit, and not
// while upstream fails on unchanged requests as well. A 5xx, which may have passed, is not remembered.
func doubtedChange(f *Form, r refusal) (plan, bool) {
	p, changed := refusedChange(f, r)
	if !changed || f.relief.doubted || r.failsUnchanged || !f.fitsUnchanged() {
		return plan{form: f}, false
	}
	p.form = p.form.asAccepted().with(func(next *Form) { // shrinking shows the view again if the unchanged body is too long
		next.calls.tail, next.relief.doubted, next.relief.refused = nil, true, r.Status < 500
	})
	return p, true
}

// Settle must be called with upstream's last answer to the form: whether it accepted the request, or why it refused it and no remedy is left. It
// logs the condensations on trial, and remembers what was learnt, if they helped. Otherwise it drops them, but after a failure that says nothing
// about the request it acts as Unanswered.
func (f *Form) Settle(ctx context.Context, accepted bool, r overflow.Refusal) (_ *Form, report Report) {
	if !f.turn.Recognised() {
		return f, report
	}
	if f.relief.doubted && r.Status/100 == 5 { // upstream failed by itself
		f.turn.engine.lessons.Learn(lessons.FailsUnchanged, f.turn.unshared(), true)
	}
	if r.Transient() {
		return f.Unanswered(ctx)
	}
	trial := f.relief.trial
	f = f.with(func(next *Form) { next.relief.trial = nil })
	if accepted {
		f.rememberAccepted()
		f = f.with(func(next *Form) { next.bound = f.turn.engine.memory.boundOf(f.place.Thread.ID) })
	}
	if !accepted || f.relief.verbatim {
		f.dropTrial(trial, &report)
		return f, report
	}
	f = f.logTrial(ctx, trial, &report)
	f.rememberHelp(&report)
	return f, report
}

// rememberHelp remembers what upstream's refusals of an earlier form have taught, now that it has accepted this one.
func (f *Form) rememberHelp(report *Report) {
	r := &f.relief
	if r.withdrawn {
		f.turn.engine.lessons.Learn(lessons.RefusesTools, f.turn.lessons, true)
	}
	if r.tooLarge > 0 {
		f.turn.engine.lessons.LearnSize(f.turn.lessons, r.tooLarge)
	}
	switch {
	case r.strippedTo > 0:
	case r.reasoning == reasoningUntouched:
		f.turn.engine.lessons.Learn(lessons.RefusesUnbinding, f.turn.lessons, true)
	case r.reasoning == reasoningPlaced:
		f.turn.engine.lessons.Learn(lessons.ChecksPlace, f.turn.lessons, true)
	}
	if r.alternates {
		f.turn.engine.lessons.Learn(lessons.AlternatesOnly, f.turn.lessons, true)
	}
	if r.tries > 0 && r.exceeded > 0 {
		f.turn.rememberWindow(r.exceeded, report)
	}
	f.turn.engine.o.Tokens.Observe(f.turn.calibration(r.files > 0), r.ours, r.theirs, r.files > 0)
}

// rememberAccepted remembers in which form upstream accepted the request, for the next one of the thread.
func (f *Form) rememberAccepted() {
	r, m, known, id := &f.relief, f.turn.engine.memory, f.turn.engine.lessons, f.place.Thread.ID
	alone := f.alone()
	known.Forget(lessons.RefusesSummaries, alone)
	switch {
	case r.refused:
		known.LearnRefusal(alone, f.turn.openLoop())
	case f.changed():
		known.ForgetRefusal(alone)
	}
	if r.strippedTo > 0 {
		m.stripTo.Add(id, r.strippedTo)
	}
	if !f.changed() && !f.turn.remote() && f.mayBeBound() && f.turn.purpose != session.PurposeCompaction {
		m.verbatim.Add(id, f.turn.history.Len()+1)
	}
}

// dropTrial drops condensations on trial that did not help.
func (f *Form) dropTrial(trial []Attempt, report *Report) {
	for _, a := range trial {
		f.attempted(report, Attempt{Reason: a.Reason, Err: ErrRefused, Cost: a.Cost})
	}
}

// Unanswered is called instead of Settle if no answer came. It logs the condensations on trial that have a summary, since a retry would pay for
// them again, and drops the others.
func (f *Form) Unanswered(ctx context.Context) (_ *Form, report Report) {
	paid := slices.DeleteFunc(slices.Clone(f.relief.trial), func(a Attempt) bool { return a.Made.Made() != session.MadeSummary })
	f = f.with(func(next *Form) { next.relief.trial = nil })
	if f.relief.verbatim {
		f.dropTrial(paid, &report)
		return f, report
	}
	f = f.logTrial(ctx, paid, &report)
	return f, report
}

// logTrial logs condensations that were on trial, even if the client has left. The view that is forwarded does not change. It needs no lock: of
// two condensations, the first one logged counts, and upstream has accepted these.
func (f *Form) logTrial(ctx context.Context, trial []Attempt, report *Report) *Form {
	if len(trial) == 0 {
		return f
	}
	forwarded := f.shown
	ctx = context.WithoutCancel(ctx)
	f, err := f.logNew(ctx)
	if err != nil {
		f.attempted(report, Attempt{Reason: trial[0].Reason, Err: err})
		return f
	}
	f = f.showing(*f.relief.beforeTrial)
	for _, a := range trial {
		next, err := f.logAndShow(ctx, a, false, report)
		if f = next; err != nil {
			f.attempted(report, a.failed(err))
			break
		}
	}
	forwarded.seen = f.shown.seen
	return f.showing(forwarded)
}

// alone is the place for what holds for the thread's requests to this model and no others.
func (f *Form) alone() lessons.Place {
	return lessons.Place{Own: f.turn.sourceOf("thread " + string(f.place.Thread.ID))}
}

// unshared is the place for what holds for the client's requests to this model and no others.
func (t *Turn) unshared() lessons.Place { return lessons.Place{Own: t.lessons.Own} }

// refusedRecently reports whether upstream refused the thread's condensed history recently, and the history fits unchanged.
func (f *Form) refusedRecently() bool {
	loop, known := f.turn.engine.lessons.Refusal(f.alone())
	if !known || f.asked.wish == WishNow {
		return false
	}
	return (loop == 0 || loop == f.turn.openLoop()) && f.fitsUnchanged()
}

// untouched is the remedy for a request that asks upstream to drop reasoning bound to another history, which an older model refuses. Such a model
// checks no such bond.
func untouched(f *Form, _ refusal) (plan, bool) {
	if f.relief.reasoning != reasoningOfModel || !f.shown.isLoose() || !f.changed() {
		return plan{form: f}, false
	}
	return plan{form: f.treating(reasoningUntouched)}, true
}

// placed is the remedy for a request with reasoning that is known to be free of its place, as by the model's name, and that upstream refuses all
// the same: a gateway may serve another model by this name.
func placed(f *Form, r refusal) (plan, bool) {
	if f.relief.reasoning != reasoningOfModel || !f.turn.byAuthor || f.turn.neverUnbinds || !r.Thinking || !f.changed() {
		return plan{form: f}, false
	}
	return plan{form: f.treating(reasoningPlaced)}, true
}

// treating returns the form that treats sealed reasoning in another way.
func (f *Form) treating(how reasoning) *Form {
	next := f.with(func(next *Form) { next.relief.reasoning = how })
	return next.showing(next.project(f.shown.applied)).shapedAnew()
}

// unsealed is the remedy for a request with sealed reasoning that upstream refuses. It strips the changed history if upstream objected to
// reasoning: its client may have edited or left out what the reasoning is bound to. It strips the unchanged history if that may be bound to a
// condensed one. An open tool loop that needs its reasoning keeps it, or, if the objection mentions thinking, as much of it as upstream demands,
// and upstream is asked to drop what is bound to another history.
func unsealed(f *Form, r refusal) (plan, bool) {
	changed := f.changed()
	switch {
	case f.turn.remote(), changed && !r.Reasoning:
		return plan{form: f}, false
	case !changed && (f.relief.strippedTo > 0 || !f.mayBeBound() && !f.hasUnloggedAnswers()):
		return plan{form: f}, false
	}
	shown, end, sent := f.shown, f.stripEnd(r.Thinking), f.shown.strippedCount()
	shown.view.Items = slices.Clone(shown.view.Items)
	if !changed {
		shown = f.project(nil)
		if f.relief.withheld == nil {
			sent = 0 // of the client's own body
		}
	}
	b := f.binding()
	b.end, b.free = end, false
	if shown = f.turn.bind(shown, b); shown.strippedCount() == sent {
		return plan{form: f}, false
	}
	return plan{form: f.with(func(next *Form) {
		next.shown = shown
		next.relief.verbatim, next.relief.strippedTo = !changed, min(end-1, f.turn.history.Len())
	})}, true
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
func (f *Form) stripEnd(unbind bool) int {
	if loop := f.turn.openLoop(); loop > 0 && !(unbind && f.unbinds()) {
		return loop
	}
	return math.MaxInt
}

// mayBeBound reports whether the thread's answers may be bound to a condensed history, even if the tenant's requests now pass unchanged.
func (f *Form) mayBeBound() bool {
	return len(f.place.Thread.Condensations)+len(f.turn.hidden.replacements) > 0
}

// hasUnloggedAnswers reports whether the history has sealed answers to requests that the log does not hold, because the store was
// unavailable or has lost them. Those requests may have been condensed.
func (f *Form) hasUnloggedAnswers() bool {
	if f.bound.stripTo > 0 {
		return true
	}
	missing := 0
	for i := range f.turn.in.Split.Messages {
		if f.turn.in.Split.Messages[i].Sealed && f.turn.history.Pos(i) > f.place.Logged {
			missing++
		}
	}
	return missing > 1 || missing == 1 && f.place.New // the answer to a logged request arrives with the next request
}
