package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// soon is the condensation that will soon be due and that a model makes, nil if none is.
func (t *Turn) soon(fixed, total int) condense.Job {
	in := t.inputOf(condense.Need{}, fixed, total)
	in.Ahead, in.Need.AtOnce = true, false
	if d := t.in.Tenant.Condenser.Condense(in); d.Job != nil && d.Job.Asks() {
		return d.Job
	}
	return nil
}

// prepare has the summary written that will soon be due, while no request waits for it.
func (t *Turn) prepare(ctx context.Context) {
	switch {
	case !t.in.Tenant.Ahead, t.in.Tenant.Observe, t.purpose == session.PurposeCompaction, t.prepared(), t.soon(t.fixed(), t.atMost()) == nil:
		return
	}
	job := t.soon(t.counted().fixed, t.size().Tokens)
	if job == nil {
		return
	}
	f := &flight{
		head: t.history.Head(), owner: t.owner(), begun: t.engine.o.Now(), done: make(chan struct{}), ahead: true, abandoned: true,
	}
	_ = t.copyFor(f).start(ctx, job.Need().Reason, &Report{}, func(ctx context.Context, c *Turn, report *Report) {
		c.makeReady(ctx, report)
	}) // where too many are under way, a later request tries
}

// prepared reports whether a condensation of the thread is prepared, or under way.
func (t *Turn) prepared() bool {
	base, known := t.engine.learnt.ready.Get(t.place.Thread.ID)
	return known && base == t.base() || t.engine.flights.under(t.place.Thread.ID) != nil
}

// base is the last condensation of the view, zero if there is none.
func (t *Turn) base() session.CondensationID {
	if n := len(t.shown.view.Applied); n > 0 {
		return t.shown.view.Applied[n-1].ID
	}
	return session.CondensationID{}
}

// makeReady makes the condensation that will soon be due, under its thread's lock, and keeps it in the store.
func (t *Turn) makeReady(ctx context.Context, report *Report) {
	job := t.soon(t.counted().fixed, t.size().Tokens)
	if job == nil {
		return
	}
	ctx, over := t.condensing(ctx, job.Need())
	defer over()
	ctx, cancel := context.WithTimeout(ctx, t.patience(job.Need()))
	defer cancel()
	held, release, err := t.claim(ctx)
	if errors.Is(err, session.ErrLocked) {
		return
	}
	if err == nil {
		defer release()
		err = t.writeAhead(held, job)
	}
	if err != nil {
		t.failed(report, Attempt{Reason: job.Need().Reason, Err: fmt.Errorf("prepare: %w", err)})
	}
}

func (t *Turn) writeAhead(ctx context.Context, job condense.Job) error {
	if changed, err := t.overtaken(ctx); err != nil || changed {
		return err
	}
	if _, err := t.ready(ctx); !errors.Is(err, session.ErrNotFound) {
		return err
	}
	result, err := job.Run(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeFactor*t.engine.o.Limits.Store)
	defer cancel()
	if err := t.registry.Prepare(ctx, &t.place, &t.shown.view, result.Condensation); err != nil {
		return err
	}
	t.engine.learnt.ready.Add(t.place.Thread.ID, t.base())
	return nil
}

// ready gives what is prepared for the view. session.ErrNotFound if nothing is.
func (t *Turn) ready(ctx context.Context) (session.Condensation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	c, err := t.registry.Prepared(ctx, &t.place, &t.shown.view)
	if err == nil {
		t.engine.learnt.ready.Add(t.place.Thread.ID, t.base())
	}
	return c, err
}

// adopt logs and shows what was prepared, where something is due now. It reports whether that, or what another request logged, is shown.
// The lock is not needed: of two condensations, the first logged counts.
func (t *Turn) adopt(ctx context.Context, need condense.Need, report *Report) bool {
	if !t.in.Tenant.Ahead || t.place.New {
		return false
	}
	c, err := t.ready(ctx)
	if err != nil {
		return false // what is due is made anew
	}
	if t.logNew(ctx) != nil {
		return false
	}
	if changed, err := t.overtaken(ctx); err != nil || changed {
		return changed
	}
	before := session.Size{Events: len(t.shown.view.Items), Tokens: t.input(need).Total}
	c.After = session.Size{Events: before.Events - c.Before.Events + c.After.Events, Tokens: before.Tokens - c.Before.Tokens + c.After.Tokens}
	c.Before, c.Reason, c.Stripped = before, need.Reason, condense.LastSealed(t.history)
	return t.commit(ctx, condense.Result{Condensation: c}, report)
}
