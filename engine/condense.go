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

// Condense has condensed what is due. It never fails: where that cannot be, or takes longer than a request waits, the view
// stays as it was.
func (t *Turn) Condense(ctx context.Context) (report Report) {
	report.Kept = Below
	switch {
	case t.remote():
		return report
	case t.in.Wish == WishOff:
		report = Report{Kept: Off, Supposed: Supposed{Due: t.due()}}
		t.recall()
		return report
	case t.in.Tenant.Observe:
		return Report{Kept: Observed, Supposed: t.suppose()}
	case t.refused():
		t.recall()
		return Report{Kept: Refused}
	}
	report.add(t.inform(ctx))
	report.add(t.tellRepeats(ctx))
	report.add(t.catchUp(ctx))
	if t.belowAllThresholds() {
		t.prepare(ctx)
		return report
	}
	again := t.join(ctx) || t.in.Wish != WishNow && (t.place.Again || t.place.Match == session.MatchReplay)
	in, decision := t.decide()
	switch {
	case decision.Job == nil:
		report.Kept = cmp.Or(Outcome(decision.Kept), Below)
		if !again {
			t.prepare(ctx)
		}
	case again: // what was forwarded once is forwarded again
		report.Kept = Again
	default:
		report.Kept = Done // by another request, if not by this one
		made, done := t.condenseDue(ctx, decision.Job.Need())
		if report.add(made); done || made.made() {
			t.follow(ctx)
			return report
		}
	}
	if t.shape(in, decision) && report.Kept == Below {
		report.Kept = Shaped
	}
	return report
}

// due is why the request would be condensed, if it were not to be left alone.
func (t *Turn) due() session.Reason {
	if t.belowAllThresholds() {
		return ""
	}
	if _, d := t.decide(); d.Job != nil {
		return d.Job.Need().Reason
	}
	return ""
}

// mostCondenses is how many condensations are made for a request at most.
const mostCondenses = 2

// condenseDue has the engine condense for as long as something is due, a bounded number of times. It reports whether that was done
// in time.
func (t *Turn) condenseDue(ctx context.Context, need condense.Need) (Report, bool) {
	ctx, over := t.condensing(ctx, need)
	defer over()
	return t.fly(ctx, need.Reason, func(ctx context.Context, c *Turn, report *Report) {
		for made := 0; ; {
			in, decision := c.decide()
			c.shape(in, decision)
			if decision.Job == nil || made == mostCondenses {
				report.Kept = Outcome(decision.Kept)
				return
			}
			if decision.Job.Need().Hard && condense.Essential(in) > condense.Room(in) && c.shorten(ctx, false, report) {
				return // what has just come is too long by itself, and nothing else was
			}
			if decision.Job.Asks() && c.adopt(ctx, decision.Job.Need(), report) {
				made++
				continue
			}
			if !c.runJob(ctx, decision.Job, true, report) {
				return
			}
			if decision.Job.Need().Reason != session.ReasonArrival {
				made++ // what is cut on arrival is cut once, and does not count
			}
		}
	})
}

// shape shows the view that the condenser makes for this request, and reports whether it makes one. The answers of an open tool loop that
// needs their reasoning are bound to the view that the loop began with, so that one stays before them, unless the window is in danger.
func (t *Turn) shape(in condense.Input, d condense.Decision) bool {
	if d.View == nil {
		return false
	}
	began, since, open := in.Began()
	if !open || overWindow(in) {
		t.show(t.reshaped(*d.View, math.MaxInt))
		return true
	}
	if d = t.in.Tenant.Condenser.Condense(began); d.View == nil {
		return false
	}
	view := *in.View
	view.Items = append(slices.Clip(d.View.Items), since...)
	t.show(t.reshaped(view, t.history.Pos(since[0].Index)))
	return true
}

// run runs a job. What that took and cost is told by the condensation, and by the attempt, which says why there is none. Where excerpts stand
// in for a summary, it gives the job that writes that.
func (t *Turn) run(ctx context.Context, job condense.Job) (Attempt, condense.Job) {
	begun, bill := t.engine.o.Now(), &bill{}
	result, err := job.Run(bill.of(ctx))
	cost := bill.total()
	cost.Took = t.engine.o.Now().Sub(begun)
	if result.Condensation.Took = cost.Took; cost.Calls > 0 {
		result.Condensation.Cost = cost
		// It counts whatever comes of it. What is lost of that is no harm.
		_ = t.save(context.WithoutCancel(ctx), t.place.Thread.ID, session.Savings{Cost: cost})
	}
	if err != nil {
		return Attempt{Reason: job.Need().Reason, Err: err, Cost: cost}, nil
	}
	return Attempt{
		Reason: result.Condensation.Reason, Made: &result.Condensation, Fallback: result.Fallback, Replaced: result.Failed, Cost: cost,
	}, result.Later
}

// runJob makes a condensation under its thread's lock, logs it and projects again. One that costs nothing and is not logged yet needs no
// lock. It reports whether another one may follow.
func (t *Turn) runJob(ctx context.Context, job condense.Job, locked bool, report *Report) bool {
	need := job.Need()
	limited, cancel := context.WithTimeout(ctx, t.patience(need))
	defer cancel()
	if locked {
		held, release, err := t.claim(limited, need.Hard || need.AtOnce || need.Try || t.relief.trying)
		if errors.Is(err, session.ErrLocked) {
			report.Kept = Locked // this request goes on without
			return false
		}
		changed := false
		if err == nil {
			defer release()
			changed, err = t.overtaken(ctx)
		}
		if err != nil {
			t.attempted(report, Attempt{Reason: need.Reason, Err: err})
		}
		if err != nil || changed {
			return changed
		}
		limited = held
	}
	tried, later := t.run(limited, job)
	if tried.Err != nil {
		t.attempted(report, tried)
		return false
	}
	return t.commit(ctx, tried, later, report)
}

// condensing tells of a condensation. The function that it returns is called at its end.
func (t *Turn) condensing(ctx context.Context, need condense.Need) (context.Context, func()) {
	if t.in.Condensing == nil {
		return ctx, func() {}
	}
	before := len(t.made)
	ctx, over := t.in.Condensing(ctx, need)
	return ctx, func() { over(t.made[before:]) }
}

// lockPause is how often a request that must be condensed asks for its thread's lock.
const lockPause = 100 * time.Millisecond

// claim logs what is new and takes the thread's lock, which is renewed until it is released. The context that it gives ends when
// the lock is lost.
//
// One that is patient waits until ctx ends while another request has the lock, and goes on without it then: what holds it takes too long,
// and of two condensations, the first logged counts.
func (t *Turn) claim(ctx context.Context, patient bool) (held context.Context, release func(), err error) {
	if err := t.logNew(ctx); err != nil {
		return nil, nil, fmt.Errorf("claim thread: %w", err)
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
		if taken := errors.Is(err, session.ErrLocked) || waited && ctx.Err() != nil; !taken || !patient {
			return nil, nil, fmt.Errorf("claim thread: %w", err)
		}
		if t.hurries() {
			return ctx, func() {}, nil
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx, func() {}, nil
		}
	}
}

// logNew logs what the thread's log lacks of the history.
func (t *Turn) logNew(ctx context.Context) error {
	tally := t.counted().tally
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	return t.registry.Append(ctx, &t.place, &tally)
}

// overtaken reports whether another request condensed the thread since it was resolved; the view is then the one that
// follows from that.
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
	t.relief.before, t.relief.trial = t.shown, nil
	return true, nil
}

// writeFactor is how many times the time of a read the write of a condensation may take: the condensation was paid for.
const writeFactor = 5

// commit writes a condensation and projects the view with it. One that is on trial is only shown until upstream has taken it, unless
// the request that it was for has gone on without it.
func (t *Turn) commit(ctx context.Context, made Attempt, later condense.Job, report *Report) bool {
	f := t.waits.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	made.Session, made.Thread = t.place.Thread.Session, t.place.Thread.ID
	if t.relief.trying && !f.abandoned {
		t.try(made)
	} else if !t.write(ctx, made, f.abandoned, report) {
		return false
	}
	t.waits.later = later
	f.reach()
	return true
}

// write logs a condensation and shows it. A request that waits for it does so no longer than for a read beyond its deadline.
func (t *Turn) write(ctx context.Context, a Attempt, abandoned bool, report *Report) bool {
	limit := writeFactor * t.engine.o.Limits.Store
	if f := t.waits.flight; f != nil && !abandoned {
		limit = min(limit, max(t.deadline()-t.engine.o.Now().Sub(f.begun), 0)+t.engine.o.Limits.Store)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a.Made.Cause = condense.Cause(a.Fallback)
	c, err := t.outlasted(ctx, *a.Made, abandoned)
	if err == nil {
		c, err = t.logCondensation(ctx, t.measured(c))
	}
	if err != nil {
		t.attempted(report, Attempt{Reason: a.Reason, Fallback: a.Fallback, Err: err, Cost: a.Cost})
		return false
	}
	a.Made, a.Redeems = &c, redeemed(t.shown.applied, &c)
	t.show(t.project(append(slices.Clip(t.shown.applied), c)))
	t.made = append(t.made, c)
	report.Attempts = append(report.Attempts, a)
	return true
}

// logCondensation logs a condensation, which its tenant may have promised to tell of before.
func (t *Turn) logCondensation(ctx context.Context, c session.Condensation) (session.Condensation, error) {
	logged := func() {}
	if promise := t.in.Tenant.Promise; promise != nil {
		c.Time = t.engine.o.Now()
		brief, cancel := briefly(ctx)
		logged = promise(brief, t.place.Thread.ID, &c)
		cancel()
	}
	c, err := t.registry.Condense(ctx, &t.place, &t.shown.view, c)
	if err == nil {
		logged()
	}
	return c, err
}

// briefly is a quarter of the time that is left, so that a promise leaves enough to log what it announces.
func briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(deadline)/4)
}

// outlasted gives a condensation that was made while its thread went on without it: what was answered meanwhile, up to the answer
// that is still to come, was bound to the history as it had been.
//
// The turn's own place stays as it is: what the thread has become may be another one, that began after this one was deleted.
func (t *Turn) outlasted(ctx context.Context, c session.Condensation, abandoned bool) (session.Condensation, error) {
	now, err := t.store.Thread(ctx, t.place.Thread.ID)
	switch {
	case err != nil:
		return c, fmt.Errorf("read thread: %w", err)
	case !now.Created.Equal(t.place.Thread.Created), len(now.Condensations) != t.shown.seen, abandoned && len(t.relief.trial) > 0:
		return c, errOutlived
	}
	if abandoned || now.Len > t.history.Len() {
		c.Stripped = max(c.Stripped, now.Len+1)
	}
	return c, nil
}

// errOutlived is why a condensation is not logged.
var errOutlived = errors.New("the thread was deleted or condensed by another request meanwhile")
