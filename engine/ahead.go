package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// soon is the condensation that will soon be due and that a model makes, nil if none is.
func (t *Turn) soon(fixed, total int) condense.Job {
	in := t.inputOf(condense.Need{Ahead: true}, fixed, total)
	if d := t.in.Tenant.Condenser.Condense(in); d.Job != nil && d.Job.Asks() {
		return d.Job
	}
	return nil
}

// prepare has the summary written that will soon be due, while no request waits for it.
func (t *Turn) prepare(ctx context.Context) {
	switch {
	case !t.in.Tenant.Ahead, t.in.Tenant.Passes(), t.purpose.Spares(), t.prepared(), t.soon(t.fixed(), t.atMost()) == nil:
		return
	}
	if job := t.soon(t.counted().fixed, t.size().Tokens); job != nil {
		t.apart(ctx, job.Need(), func(ctx context.Context, c *Turn) Attempt {
			job := c.soon(c.counted().fixed, c.size().Tokens)
			if ready, err := c.ready(ctx); job == nil || err == nil && !repeats(&ready, &c.shown.view) {
				return Attempt{}
			}
			tried := c.writeAhead(ctx, job)
			if tried.Err == nil {
				c.engine.memory.ready.Add(c.place.Thread.ID, c.base())
			}
			return tried
		})
	}
}

// follow has the summary written of what was condensed without one.
func (t *Turn) follow(ctx context.Context) {
	if job := t.waits.later; job != nil && t.in.Tenant.Ahead {
		t.apart(ctx, job.Need(), func(ctx context.Context, c *Turn) Attempt { return c.writeAhead(ctx, job) })
	}
	t.waits.later = nil
}

// apart has work done under the thread's lock while no request waits for it. What the thread has become by then is shown. Where another
// works on the thread, or too many are at work, it is left to a later request.
func (t *Turn) apart(ctx context.Context, need condense.Need, work func(ctx context.Context, c *Turn) Attempt) {
	_, _ = t.start(ctx, need.Reason, true, func(ctx context.Context, c *Turn, report *Report) {
		ctx, cancel := context.WithTimeout(ctx, c.patience(need))
		defer cancel()
		held, release, err := c.claim(ctx, false)
		if errors.Is(err, session.ErrLocked) {
			return
		}
		tried := Attempt{Err: err}
		if err == nil {
			defer release()
			before := c.base()
			if _, tried.Err = c.overtaken(ctx); tried.Err == nil && c.base() == before {
				tried = work(held, c)
			}
		}
		if tried.Err != nil {
			tried.Reason, tried.Err = need.Reason, fmt.Errorf("prepare: %w", tried.Err)
		}
		if tried.Reason != "" { // something was due
			c.attempted(report, tried)
		}
	})
}

// writeAhead makes a condensation and keeps it in the store.
func (t *Turn) writeAhead(ctx context.Context, job condense.Job) Attempt {
	tried, _ := t.run(ctx, job)
	if tried.Err != nil {
		return tried
	}
	made := *tried.Made
	tried.Made, tried.Fallback = nil, nil // it is not logged yet
	ctx, cancel := context.WithTimeout(ctx, writeFactor*t.engine.o.Limits.Store)
	defer cancel()
	tried.Err = t.registry.Prepare(ctx, &t.place, &t.shown.view, made)
	return tried
}

// prepared reports whether a condensation of the thread is prepared, or under way.
func (t *Turn) prepared() bool {
	base, known := t.engine.memory.ready.Get(t.place.Thread.ID)
	return known && base == t.base() || t.engine.flights.under(t.place.Thread.ID) != nil
}

// base is the last condensation of the view, zero if there is none.
func (t *Turn) base() session.CondensationID {
	if n := len(t.shown.view.Applied); n > 0 {
		return t.shown.view.Applied[n-1].ID
	}
	return session.CondensationID{}
}

// ready gives what is prepared for the view. session.ErrNotFound if nothing is.
func (t *Turn) ready(ctx context.Context) (session.Condensation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	return t.registry.Prepared(ctx, &t.place, &t.shown.view)
}

// repeats reports whether a condensation hides nothing but what the last one does: it is the summary that that one lacks.
func repeats(c *session.Condensation, v *session.View) bool {
	n := len(v.Applied)
	return n > 0 && slices.Equal(c.Forgotten, v.Applied[n-1].Forgotten)
}

// adopt logs and shows what was prepared. It reports whether that, or what another request logged meanwhile, is shown. The lock is not
// needed: of two condensations, the first logged counts.
func (t *Turn) adopt(ctx context.Context, need condense.Need, report *Report) bool {
	if !t.in.Tenant.Ahead || t.place.New {
		return false
	}
	c, err := t.ready(ctx)
	if err != nil || t.logNew(ctx) != nil {
		return false // what is due is made anew
	}
	if changed, err := t.overtaken(ctx); err != nil || changed {
		return changed
	}
	c.Reason, c.Stripped, c.Time = need.Reason, condense.LastSealed(t.history), time.Time{}
	return t.commit(ctx, Attempt{Reason: c.Reason, Made: &c}, nil, report)
}

// coldAfter is how long no provider keeps an idle prefix in its cache.
const coldAfter = time.Hour

// catchUp shows the summary of what was condensed without one, where that costs no cache anything.
func (t *Turn) catchUp(ctx context.Context) Report {
	n := len(t.shown.view.Applied)
	if n == 0 || !t.shown.view.Applied[n-1].Provisional || t.thread().Idle < coldAfter || t.in.Tenant.Passes() ||
		t.purpose.Spares() || t.place.Again || t.place.Match == session.MatchReplay {
		return Report{}
	}
	need := condense.Need{Reason: t.shown.view.Applied[n-1].Reason}
	report, _ := t.fly(ctx, need.Reason, func(ctx context.Context, c *Turn, report *Report) { c.adopt(ctx, need, report) })
	return report
}
