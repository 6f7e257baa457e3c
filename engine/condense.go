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
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condense makes the condensations that are due. It never fails: if a condensation fails, or takes longer than the request waits, the
// view stays as it was.
func (t *Turn) Condense(ctx context.Context) (report Report) {
	report.Kept = Below
	switch {
	case t.remote():
		return report
	case t.in.Wish == WishOff:
		report = Report{Kept: Off, Supposed: Supposed{Due: t.dueReason()}}
		t.forwardAsAccepted()
		return report
	case t.in.Tenant.Observe:
		return Report{Kept: Observed, Supposed: t.suppose()}
	case t.refusedRecently():
		t.forwardAsAccepted()
		return Report{Kept: Refused}
	}
	report.add(t.addKnowledge(ctx))
	report.add(t.catchUp(ctx))
	if t.belowAllThresholds() {
		t.prepare(ctx)
		return report
	}
	again := t.joinFlight(ctx) || t.in.Wish != WishNow && (t.place.Again || t.place.Match == session.MatchReplay)
	in, decision := t.decide()
	switch {
	case decision.Job == nil:
		report.Kept = cmp.Or(Outcome(decision.Kept), Below)
		if !again {
			t.prepare(ctx)
		}
	case again && !(decision.Job.Need().Hard && (t.neverWaits() || !decision.Job.Asks())): // a retry is forwarded as it was before
		report.Kept = Again
	default:
		report.Kept = Done // even if another request made the condensation
		made, inTime := t.condenseDue(ctx, decision.Job.Need())
		report.add(made)
		if inTime || made.made() {
			t.summariseLater(ctx)
			return report
		}
	}
	if t.shape(in, decision) && report.Kept == Below {
		report.Kept = Shaped
	}
	return report
}

// dueReason returns why the request would be condensed if its client or tenant had not opted out. Empty: nothing is due.
func (t *Turn) dueReason() session.Reason {
	if t.belowAllThresholds() {
		return ""
	}
	if _, d := t.decide(); d.Job != nil {
		return d.Job.Need().Reason
	}
	return ""
}

// maxCondensations is how many condensations one request may cause.
const maxCondensations = 2

// condenseDue makes condensations until nothing is due, maxCondensations are made, or other requests were first that many times. It reports
// whether it finished in time.
func (t *Turn) condenseDue(ctx context.Context, need condense.Need) (Report, bool) {
	ctx, done := t.announce(ctx, need)
	defer done()
	return t.runFlight(ctx, need.Reason, func(ctx context.Context, c *Turn, report *Report) {
		for made, lost := 0, 0; ; {
			in, decision := c.decide()
			if n := len(c.made); decision.Job == nil && made > 0 && need.AtOnce && hidesNothing(&c.made[n-1]) {
				in = c.input(condense.Need{Reason: need.Reason}) // what was due before excerpts were replaced by their summary still is
				decision = c.in.Tenant.Condenser.Condense(in)
			}
			c.shape(in, decision)
			if decision.Job == nil || made == maxCondensations || lost == maxCondensations {
				report.Kept = Outcome(decision.Kept)
				return
			}
			before, seen := len(c.made), c.shown.seen
			need = decision.Job.Need()
			if need.Hard && condense.Essential(in) > condense.Room(in) && c.shorten(ctx, false, report) {
				return // only the newest results were too long
			}
			changed := c.shown.seen != seen || decision.Job.Asks() && c.usePrepared(ctx, need, report)
			if !changed && !c.applyJob(ctx, decision.Job, true, report) {
				return
			}
			switch {
			case len(c.made) == before:
				lost++ // another request has condensed the thread
			case need.Reason != session.ReasonArrival: // results are cut once on arrival, so those need no bound
				made++
			}
		}
	})
}

// hidesNothing reports whether c made the view hardly smaller, as the summary of excerpts does that were shown already. Alone it would rewrite
// the cached beginning of the prompt for nothing.
func hidesNothing(c *session.Condensation) bool {
	return c.Before.Events == c.After.Events && c.After.Tokens > c.Before.Tokens*9/10
}

// shape shows the view that the condenser makes for this request, and reports whether there is one.
//
// An open tool loop that needs its reasoning stays bound to the view that it began with. That view is kept in front of the loop, unless
// the request would exceed the window.
func (t *Turn) shape(in condense.Input, d condense.Decision) bool {
	if d.View == nil {
		return false
	}
	began, since, open := in.LoopStart()
	if !open || overWindow(in) {
		t.show(t.reshaped(*d.View, math.MaxInt))
		return true
	}
	d = t.in.Tenant.Condenser.Condense(began)
	if d.View == nil {
		return false
	}
	view := *in.View
	view.Items = append(slices.Clip(d.View.Items), since...)
	t.show(t.reshaped(view, t.history.Pos(since[0].Index)))
	return true
}

// runJob runs a job and charges its cost to the thread. The attempt holds the condensation or the error. If excerpts stand in for a
// summary, runJob also returns the job that writes that summary.
func (t *Turn) runJob(ctx context.Context, job condense.Job) (Attempt, condense.Job) {
	begun := t.engine.o.Now()
	if job.Asks() && !job.Need().AtOnce && !t.engine.mayAsk() {
		return Attempt{Reason: job.Need().Reason, Err: errUnkept}, nil
	}
	billed, total := withCost(ctx)
	result, err := job.Run(billed)
	cost := total()
	cost.Took = t.engine.o.Now().Sub(begun)
	result.Condensation.Took = cost.Took
	if cost.Calls > 0 {
		result.Condensation.Cost = cost
		// The cost counts whether or not the condensation is used. Losing a figure does no harm.
		_ = t.save(context.WithoutCancel(ctx), t.place.Thread.ID, session.Savings{Cost: cost})
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
func (t *Turn) applyJob(ctx context.Context, job condense.Job, locked bool, report *Report) bool {
	need := job.Need()
	limited, cancel := context.WithTimeout(ctx, t.condenseTimeout(need))
	defer cancel()
	if locked {
		held, release, err := t.lockThread(limited, need.Hard || need.AtOnce || need.Try || t.relief.onTrial)
		if errors.Is(err, session.ErrLocked) {
			report.Kept = Locked // this request goes on without a condensation
			return false
		}
		changed := false
		if err == nil {
			defer release()
			changed, err = t.overtaken(ctx)
		}
		if err != nil {
			t.attempted(report, Attempt{Reason: need.Reason, Err: err})
			return false
		}
		if changed {
			return true
		}
		limited = held
	}
	tried, later := t.runJob(limited, job)
	if tried.Err != nil {
		t.attempted(report, tried)
		return false
	}
	return t.commit(ctx, tried, later, report)
}

// announce calls Input.Condensing. The returned function must be called at the end of the condensation.
func (t *Turn) announce(ctx context.Context, need condense.Need) (context.Context, func()) {
	if t.in.Condensing == nil {
		return ctx, func() {}
	}
	before := len(t.made)
	ctx, done := t.in.Condensing(ctx, need)
	return ctx, func() { done(t.made[before:]) }
}

// lockRetry is how often a request that has to be condensed tries to lock its thread.
const lockRetry = 100 * time.Millisecond

// lockThread logs the new messages and locks the thread. The lock is renewed until release is called. The context held ends when the
// lock is lost.
//
// If another request has the lock, a patient caller waits for it until ctx ends, and then continues without it: the holder takes too
// long, and of two condensations, the first one logged counts.
func (t *Turn) lockThread(ctx context.Context, patient bool) (held context.Context, release func(), err error) {
	if err := t.logNew(ctx); err != nil {
		return nil, nil, fmt.Errorf("lock thread: %w", err)
	}
	ttl := t.engine.o.Limits.CondenseLease
	for waited := false; ; waited = true {
		limited, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
		lease, err := t.store.Lock(limited, t.place.Thread.ID, ttl)
		cancel()
		if err == nil {
			held, release = lease.Hold(ctx, ttl)
			return held, release, nil
		}
		taken := errors.Is(err, session.ErrLocked) || waited && ctx.Err() != nil
		if !taken || !patient {
			return nil, nil, fmt.Errorf("lock thread: %w", err)
		}
		if t.neverWaits() {
			return ctx, func() {}, nil
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return ctx, func() {}, nil
		}
	}
}

// logNew appends the messages that the thread's log does not have yet.
func (t *Turn) logNew(ctx context.Context) error {
	tally := t.counted().tally
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	return t.registry.Append(ctx, &t.place, &tally)
}

// overtaken reports whether another request has condensed the thread since it was resolved. If so, it shows the view that results.
func (t *Turn) overtaken(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	if err := t.registry.Refresh(ctx, &t.place); err != nil {
		return false, err
	}
	if len(t.place.Thread.Condensations) == t.shown.seen {
		return false, nil
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil {
		return false, err
	}
	t.show(t.project(applied))
	t.relief.beforeTrial, t.relief.trial = t.shown, nil
	return true, nil
}

// writeFactor is how many times longer than a read the write of a condensation may take: the condensation is already paid for.
const writeFactor = 5

// commit logs a condensation and projects the view with it. On trial, it is only shown until upstream accepts it, unless the request has
// gone on without it. If another request has condensed the thread first, commit shows the view that results from that. It reports
// whether the view has changed.
func (t *Turn) commit(ctx context.Context, made Attempt, later condense.Job, report *Report) bool {
	f := t.wait.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	made.Session, made.Thread = t.place.Thread.Session, t.place.Thread.ID
	if t.relief.onTrial && !f.abandoned {
		t.showOnTrial(made)
	} else if err := t.logAndShow(ctx, made, f.abandoned, report); err != nil {
		shown := false
		if errors.Is(err, ErrSuperseded) && !f.abandoned {
			shown, _ = t.overtaken(ctx) // if the thread cannot be read, the view stays as it is
		}
		if !shown || made.Cost.Calls > 0 {
			t.attempted(report, made.failed(err))
		}
		if !shown {
			return false
		}
		later = t.wait.later
	}
	t.wait.later = later
	if !f.abandoned { // what is logged so far, for the request
		f.checkpoint, f.attempts = f.turn.copyFor(nil), slices.Clone(f.report.Attempts)
	}
	return true
}

// logAndShow logs a condensation and shows it. A request waits for a write no longer than one read beyond its deadline.
func (t *Turn) logAndShow(ctx context.Context, a Attempt, abandoned bool, report *Report) error {
	limit := writeFactor * t.engine.o.Limits.Store
	if !abandoned {
		left := t.longestWait() - t.wait.soFar
		if f := t.wait.flight; f != nil {
			left -= t.engine.o.Now().Sub(f.begun)
		}
		limit = min(limit, max(left, 0)+t.engine.o.Limits.Store)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a.Made.Cause = condense.Cause(a.Fallback)
	mu := make(chanMutex, 1)
	if known, ok, _ := t.engine.memory.logging.PeekOrAdd(t.place.Thread.ID, mu); ok {
		mu = known
	}
	select {
	case mu <- struct{}{}:
		defer mu.Unlock()
	case <-ctx.Done():
		return fmt.Errorf("another request is still logging a condensation: %w", session.ErrUnavailable)
	}
	c, err := t.revalidate(ctx, *a.Made, abandoned)
	if err == nil {
		c, err = t.logCondensation(ctx, t.withSizes(c))
	}
	if err != nil {
		return err
	}
	a.Made, a.Redeems = &c, redeemed(t.shown.applied, &c)
	t.show(t.project(append(slices.Clip(t.shown.applied), c)))
	t.made = append(t.made, c)
	report.Attempts = append(report.Attempts, a)
	return nil
}

// logCondensation logs a condensation, after calling the tenant's Promise.
func (t *Turn) logCondensation(ctx context.Context, c session.Condensation) (session.Condensation, error) {
	logged := func() {}
	if promise := t.in.Tenant.Promise; promise != nil {
		c.Time = t.engine.o.Now()
		limited, cancel := quarterOf(ctx)
		logged = promise(limited, t.place.Thread.ID, &c)
		cancel()
	}
	c, err := t.registry.Condense(ctx, &t.place, &t.shown.view, c)
	if err != nil || c.Answers() { // a trim may fit where a summary does not
		t.engine.noteWrite(err)
	}
	if err == nil {
		logged()
	}
	return c, err
}

// quarterOf returns a context with a quarter of the time left in ctx, so that a promise leaves enough time to log the condensation.
func quarterOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(deadline)/4)
}

// revalidate checks that a condensation still applies to its thread, which may have gone on while it was made. Answers given meanwhile,
// up to the one still to come, were bound to the history as it was, so it strips their sealed reasoning, too.
//
// It does not update the turn's place: the id may by now belong to another thread, begun after this one was deleted.
func (t *Turn) revalidate(ctx context.Context, c session.Condensation, abandoned bool) (session.Condensation, error) {
	now, err := t.store.Thread(ctx, t.place.Thread.ID)
	switch {
	case err != nil:
		return c, fmt.Errorf("read thread: %w", err)
	case !now.Created.Equal(t.place.Thread.Created):
		return c, fmt.Errorf("the thread has meanwhile been deleted: %w", session.ErrNotFound)
	case len(now.Condensations) != t.shown.seen, abandoned && len(t.relief.trial) > 0:
		return c, ErrSuperseded
	}
	if abandoned || now.Len > t.history.Len() {
		c.Stripped = max(c.Stripped, now.Len+1)
	}
	return c, nil
}

// ErrSuperseded is reported when a finished condensation is not logged because another request was first.
var ErrSuperseded = errors.New("another request has meanwhile condensed the thread")

// unkeptPause is how long no model is called after the store did not keep a condensation, as when its disk is full but can still be read.
// Excerpts are still tried: they cost nothing, and end the pause if they are kept.
const unkeptPause = 5 * time.Minute

// errUnkept is the reason why no model is called: its summary would probably be lost, and the next request would pay again.
var errUnkept = fmt.Errorf("no model is called, since the store did not keep a recent condensation: %w", session.ErrUnavailable)

// pauses reports whether models are not called for now.
func (e *Engine) pauses() bool { return e.o.Now().UnixNano() < e.pausedUntil.Load() }

// mayAsk reports whether a model may be called. After a pause it admits one call, and another pause begins.
func (e *Engine) mayAsk() bool {
	until := e.pausedUntil.Load()
	return until == 0 || !e.pauses() && e.pausedUntil.CompareAndSwap(until, e.o.Now().Add(unkeptPause).UnixNano())
}

// noteWrite records the outcome of writing a condensation. Failures during a pause do not extend it.
func (e *Engine) noteWrite(err error) {
	switch {
	case err == nil:
		e.pausedUntil.Store(0)
	case errors.Is(err, session.ErrUnavailable) && !e.pauses():
		e.pausedUntil.Store(e.o.Now().Add(unkeptPause).UnixNano())
	}
}
