package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine/summaries"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condense makes the condensations that are due, and returns the form that shows them. It never fails: if a condensation fails, or takes longer
// than the request waits, the view stays as it was.
func (f *Form) Condense(ctx context.Context) (_ *Form, report Report) {
	if !f.turn.Recognised() {
		return f, report
	}
	report.Outcome = Below
	switch {
	case f.turn.unknown():
		if f.turn.kept.unread {
			report.Outcome = Unread
		}
		return f, report
	case f.turn.remote() && f.turn.place.New: // a fork is logged with its answer, and can be condensed from then on
		if f.dueReason() != "" {
			report.Outcome = Unread
		}
		return f, report
	case f.asked.wish == WishOff:
		return f.asAccepted(), Report{Outcome: Off, Supposed: Supposed{Due: f.dueReason()}}
	case f.turn.in.Tenant.Observe:
		return f, Report{Outcome: Observed, Supposed: f.suppose()}
	case f.refusedRecently():
		return f.asAccepted(), Report{Outcome: Refused}
	}
	f = f.knowing().addKnowledge(ctx, &report)
	f = f.catchUp(ctx, &report)
	f = f.limitSize(ctx, &report)
	if f.belowAllThresholds() {
		f.prepare(ctx)
		return f, report
	}
	f, again := f.joinTask(ctx)
	again = again || f.asked.wish != WishNow && (f.place.Again || f.place.Match == session.MatchReplay)
	in, decision := f.decide()
	report.Cramped = f.cramped(in, decision)
	switch {
	case decision.Job == nil:
		report.Outcome = cmp.Or(Outcome(decision.Obstacle), Below)
		if !again {
			f.prepare(ctx)
		}
	case again && !(decision.Job.Need().Hard && (f.neverWaits() || !decision.Job.Asks())): // a retry is forwarded as it was before
		report.Outcome = Again
	case f.awaitsSummary(decision.Job):
		report.Outcome = Preparing
	default:
		report.Outcome = Done // even if another request made the condensation
		next, made, inTime := f.condenseDue(ctx, decision.Job.Need())
		f = next
		report.add(made)
		if inTime || made.made() {
			return f.summariseLater(ctx), report
		}
	}
	shaped, ok := f.shape(in, decision)
	if ok && report.Outcome == Below {
		report.Outcome = Shaped
	}
	return shaped, report
}

// cramped returns what the configured limit leaves of the history, if that is too little, once for each model of an upstream.
func (f *Form) cramped(in condense.Input, d condense.Decision) *Cramped {
	if d.Due != session.ReasonTokens {
		return nil
	}
	memory, is := condense.Cramped(in)
	if !is {
		return nil
	}
	if said, _ := f.turn.engine.memory.cramped.ContainsOrAdd(f.turn.sourceOf("cramped"), struct{}{}); said {
		return nil
	}
	return &Cramped{Tokens: in.Total, Memory: memory}
}

// awaitsSummary reports whether a job is due only by price while its summary is being written. The request then goes on as it is, without
// waiting: a few more requests at the old size cost less than condensing without the summary now and with it later.
func (f *Form) awaitsSummary(job condense.Job) bool {
	need := job.Need()
	running := f.turn.engine.summaries.Find(f.place.Thread.ID)
	return job.Asks() && need.AtOnce && !need.Hard && need.Reason == session.ReasonEconomics && running != nil && running.Ahead
}

// dueReason returns why the request would be condensed if its client or tenant had not opted out. Empty: nothing is due.
func (f *Form) dueReason() session.Reason {
	if f.belowAllThresholds() {
		return ""
	}
	if _, d := f.decide(); d.Job != nil {
		return d.Job.Need().Reason
	}
	return ""
}

// maxCondensations is how many condensations one request may cause.
const maxCondensations = 2

// condenseDue makes condensations until nothing is due, or it has made maxCondensations, or other requests have condensed the thread first that
// many times. It reports whether it finished in time.
func (f *Form) condenseDue(ctx context.Context, need condense.Need) (*Form, Report, bool) {
	ctx, done := f.announce(ctx, need)
	before := len(f.made)
	next, report, inTime := f.await(ctx, need.Reason, func(ctx context.Context, f *Form, report *Report) *Form {
		return f.condenseAll(ctx, need, report)
	})
	done(next.made[before:])
	return next, report, inTime
}

// condenseAll is the work of condenseDue.
func (f *Form) condenseAll(ctx context.Context, need condense.Need, report *Report) *Form {
	for made, lost := 0, 0; ; {
		in, decision := f.decide()
		if n := len(f.made); decision.Job == nil && made > 0 && need.AtOnce && hidesNothing(&f.made[n-1]) {
			in = f.input(condense.Need{Reason: need.Reason}) // the summary has only replaced excerpts, so that the condensation is still due
			decision = f.turn.in.Tenant.Condenser.Condense(in)
		}
		f, _ = f.shape(in, decision)
		in.View = &f.shown.view
		if sent, ok := in.Thread.Sent.(*sending); ok {
			sent.form = f
		}
		if decision.Job == nil || made == maxCondensations || lost == maxCondensations {
			report.Outcome = Outcome(decision.Obstacle)
			return f
		}
		before, seen := len(f.made), f.shown.seen
		need = decision.Job.Need()
		if need.Hard && condense.Essential(in) > condense.Room(in) {
			var fits bool
			if f, fits = f.shorten(ctx, false, report); fits {
				return f // only the newest results were too long
			}
		}
		changed := f.shown.seen != seen
		if !changed && decision.Job.Asks() {
			f, changed = f.usePrepared(ctx, need, report)
		}
		if !changed {
			if f, changed = f.applyJob(ctx, decision.Job, true, report); !changed {
				return f
			}
		}
		switch {
		case len(f.made) == before:
			lost++ // another request has condensed the thread
		case need.Reason != session.ReasonArrival && need.Reason != session.ReasonSize: // results are cut once on arrival, so those need no bound
			made++
		}
	}
}

// hidesNothing reports whether c has hardly made the view smaller. The summary that replaces excerpts is such a condensation. If it were the only
// change, the cached beginning of the prompt would be rewritten for nothing.
func hidesNothing(c *session.Condensation) bool {
	return c.Before.Events == c.After.Events && c.After.Tokens > c.Before.Tokens*9/10
}

// shape returns the form with the view that the condenser makes for this request, and reports whether there is one.
//
// An open tool loop that needs its reasoning stays bound to the view that it began with. That view is kept in front of the loop, unless
// the request would exceed the window or the reasoning is valid behind any view.
func (f *Form) shape(in condense.Input, d condense.Decision) (*Form, bool) {
	if d.View == nil {
		return f, false
	}
	began, since, open := in.LoopStart()
	if !open || overWindow(in) || f.keepsReasoning() {
		return f.showing(f.reshaped(*d.View, math.MaxInt)), true
	}
	d = f.turn.in.Tenant.Condenser.Condense(began)
	if d.View == nil {
		return f, false
	}
	view := *in.View
	view.Items = append(slices.Clip(d.View.Items), since...)
	return f.showing(f.reshaped(view, f.turn.history.Pos(since[0].Index))), true
}

// runJob runs a job and charges its cost to the thread. The attempt holds the condensation or the error. If excerpts stand in for a
// summary, runJob also returns the job that writes that summary.
func (f *Form) runJob(ctx context.Context, job condense.Job) (Attempt, condense.Job) {
	begun := f.turn.engine.o.Now()
	if job.Asks() && !job.Need().AtOnce && !f.turn.engine.summaries.MayAsk() {
		return Attempt{Reason: job.Need().Reason, Err: summaries.ErrUnkept}, nil
	}
	billed, total := withCost(ctx)
	result, err := job.Run(billed)
	cost := total()
	cost.Took = f.turn.engine.o.Now().Sub(begun)
	result.Condensation.Took = cost.Took
	if cost.Calls > 0 {
		result.Condensation.Cost = cost
		// The cost counts whether or not the condensation is used. Losing a figure does no harm.
		_ = f.turn.save(context.WithoutCancel(ctx), f.place.Thread.ID, session.Savings{Cost: cost})
	}
	if err != nil {
		return Attempt{Reason: job.Need().Reason, Err: err, Cost: cost}, nil
	}
	return Attempt{
		Reason: result.Condensation.Reason, Made: &result.Condensation, Fallback: result.Fallback, Replaced: result.Failed, Cost: cost,
	}, result.Later
}

// applyJob runs a job, logs its condensation and projects the view again, under the thread's lock if locked is set. A condensation that
// costs nothing and is not logged yet needs no lock. It reports whether another condensation may follow.
func (f *Form) applyJob(ctx context.Context, job condense.Job, locked bool, report *Report) (*Form, bool) {
	need := job.Need()
	limited, cancel := context.WithTimeout(ctx, f.condenseTimeout(need))
	defer cancel()
	if locked {
		next, held, release, err := f.lockThread(limited, need.Hard || need.AtOnce || need.Try || f.relief.onTrial)
		if f = next; errors.Is(err, session.ErrLocked) {
			report.Outcome = Locked // this request goes on without a condensation
			return f, false
		}
		changed := false
		if err == nil {
			defer release()
			f, changed, err = f.overtaken(ctx)
		}
		if err != nil {
			f.attempted(report, Attempt{Reason: need.Reason, Err: err})
			return f, false
		}
		if changed {
			return f, true
		}
		limited = held
	}
	tried, later := f.runJob(limited, job)
	if tried.Err != nil {
		f.attempted(report, tried)
		return f, false
	}
	return f.commit(ctx, tried, later, report)
}

// announce calls Input.Condensing. The returned function must be called at the end, with the condensations made.
func (f *Form) announce(ctx context.Context, need condense.Need) (context.Context, func([]session.Condensation)) {
	if f.turn.in.Condensing == nil {
		return ctx, func([]session.Condensation) {}
	}
	return f.turn.in.Condensing(ctx, need)
}

// lockThread logs the new messages and locks the thread; see summaries.LockThread.
func (f *Form) lockThread(ctx context.Context, patient bool) (next *Form, held context.Context, release func(), err error) {
	if f, err = f.logNew(ctx); err != nil {
		return f, nil, nil, fmt.Errorf("lock thread: %w", err)
	}
	limits := &f.turn.engine.o.Limits
	held, release, err = summaries.LockThread(ctx, f.turn.store, f.place.Thread.ID, summaries.Lock{
		Lease: limits.CondenseLease, Limit: limits.Store, Patient: patient, Waits: !f.neverWaits(),
	})
	return f, held, release, err
}

// logNew appends the messages that the thread's log does not have yet.
func (f *Form) logNew(ctx context.Context) (*Form, error) {
	if f.turn.remote() {
		return f, nil // they are logged with the answer
	}
	tally, place := f.turn.counted().tally, f.at()
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	err := f.turn.registry.Append(ctx, place, &tally)
	return f.moved(place), err
}

// overtaken reports whether another request has condensed the thread since it was read. If so, it returns the form with the view that results.
func (f *Form) overtaken(ctx context.Context) (*Form, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	place := f.at()
	if err := f.turn.registry.Refresh(ctx, place); err != nil {
		return f, false, err
	}
	f = f.moved(place)
	if len(place.Thread.Condensations) == f.shown.seen {
		return f, false, nil
	}
	applied, err := f.turn.registry.Condensations(ctx, place)
	if err != nil {
		return f, false, err
	}
	return f.moved(place).afresh(applied), true, nil
}

// afresh returns the form that shows the history under condensations and has none on trial.
func (f *Form) afresh(applied []session.Condensation) *Form {
	return f.with(func(next *Form) {
		next.shown = f.project(applied)
		next.relief.trial = nil
		if next.relief.onTrial {
			shown := next.shown
			next.relief.beforeTrial = &shown
		}
	})
}

// writeFactor is how many times longer than a read the write of a condensation may take: the condensation is already paid for.
const writeFactor = 5

// commit logs a condensation and shows it. On trial, it is only shown until upstream accepts it, unless the request has gone on without it. If
// another request has condensed the thread first, commit shows the view that results from that. It reports whether the view has changed.
func (f *Form) commit(ctx context.Context, made Attempt, later condense.Job, report *Report) (next *Form, changed bool) {
	made.Session, made.Thread = f.place.Thread.Session, f.place.Thread.ID
	f.waits.task.Commit(func(left bool) (progress, bool) {
		next, changed = f.commitUnlessLate(ctx, made, later, left, report)
		return progress{next, Report{Attempts: slices.Clone(report.Attempts)}}, changed
	})
	return next, changed
}

// commitUnlessLate does the work of commit. Meanwhile the request can neither go on without the task nor take its result; left tells whether it
// has gone on before.
func (f *Form) commitUnlessLate(ctx context.Context, made Attempt, later condense.Job, left bool, report *Report) (next *Form, changed bool) {
	var err error
	if f.relief.onTrial && !left {
		next = f.showingOnTrial(made)
	} else if next, err = f.logAndShow(ctx, made, left, report); err != nil {
		shown := false
		if errors.Is(err, ErrSuperseded) && !left {
			next, shown, _ = f.overtaken(ctx) // if the thread cannot be read, the view stays as it is
		}
		if !shown || made.Cost.Calls > 0 {
			f.attempted(report, made.failed(err))
		}
		if !shown {
			return next, false
		}
		later = f.waits.later
	}
	return next.with(func(next *Form) { next.waits.later = later }), true
}

// logAndShow logs a condensation and shows it. A request waits for a write no longer than one read beyond its deadline.
func (f *Form) logAndShow(ctx context.Context, a Attempt, abandoned bool, report *Report) (*Form, error) {
	limit := writeFactor * f.turn.engine.o.Limits.Store
	if !abandoned {
		left := f.turn.longestWait() - f.waits.soFar
		if f.waits.task != nil {
			left -= f.turn.engine.o.Now().Sub(f.waits.task.Begun)
		}
		limit = min(limit, max(left, 0)+f.turn.engine.o.Limits.Store)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a.Made.Cause = condense.Cause(a.Fallback)
	release, err := f.turn.engine.summaries.HoldLog(ctx, f.place.Thread.ID)
	if err != nil {
		return f, err
	}
	defer release()
	c, err := f.revalidate(ctx, *a.Made, abandoned)
	if err == nil {
		f, c, err = f.logCondensation(ctx, f.withSizes(c))
	}
	if err != nil {
		return f, err
	}
	a.Made, a.Redeems = &c, redeemed(f.shown.applied, &c)
	report.Attempts = append(report.Attempts, a)
	return f.with(func(next *Form) {
		next.shown = f.project(append(slices.Clip(f.shown.applied), c))
		next.made = append(slices.Clip(f.made), c)
	}), nil
}

// logCondensation logs a condensation, after calling the tenant's Promise.
func (f *Form) logCondensation(ctx context.Context, c session.Condensation) (*Form, session.Condensation, error) {
	logged := func() {}
	if promise := f.turn.in.Tenant.Promise; promise != nil {
		c.Time = f.turn.engine.o.Now()
		limited, cancel := quarterOf(ctx)
		logged = promise(limited, f.place.Thread.ID, &c)
		cancel()
	}
	place := f.at()
	c, err := f.turn.registry.Condense(ctx, place, &f.shown.view, c)
	if err != nil || c.Answers() { // a successful trim proves little: the store may have room for it and none for a summary
		f.turn.engine.summaries.NoteWrite(err)
	}
	if err == nil {
		logged()
	}
	return f.moved(place), c, err
}

// quarterOf returns a context with a quarter of the time left in ctx, so that a promise leaves enough time to log the condensation.
func quarterOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(deadline)/4)
}

// revalidate checks that a condensation still applies to its thread, which may have gone on while it was made. Answers given meanwhile,
// up to the one still to come, were bound to the history as it was, so it strips their sealed reasoning, too.
//
// It does not update the form's place: the id may by now belong to another thread, begun after this one was deleted.
func (f *Form) revalidate(ctx context.Context, c session.Condensation, abandoned bool) (session.Condensation, error) {
	now, err := f.turn.store.Thread(ctx, f.place.Thread.ID)
	switch {
	case err != nil:
		return c, fmt.Errorf("read thread: %w", err)
	case !now.Created.Equal(f.place.Thread.Created):
		return c, fmt.Errorf("the thread has meanwhile been deleted: %w", session.ErrNotFound)
	case len(now.Condensations) != f.shown.seen, abandoned && len(f.relief.trial) > 0:
		return c, ErrSuperseded
	}
	if abandoned || now.Len > f.turn.history.Len() {
		c.Stripped = max(c.Stripped, now.Len+1)
	}
	return c, nil
}

// ErrSuperseded is reported when a finished condensation is not logged because another request was first.
var ErrSuperseded = errors.New("another request has meanwhile condensed the thread")
