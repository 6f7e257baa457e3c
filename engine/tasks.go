package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/engine/summaries"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrDeadline is reported when a request goes on without a condensation that took longer than it waits.
var ErrDeadline = errors.New("the condensation was not ready before the deadline; it continues for the next request")

// progress is how far a task has come: the form with what it has committed, and what there is to report.
type progress struct {
	form   *Form
	report Report
}

// task makes condensations on a form, and outlives its request.
type task = summaries.Pending[progress]

// Close waits for running condensations until ctx ends, and then cancels them.
func (e *Engine) Close(ctx context.Context) error {
	if err := e.summaries.Close(ctx); err != nil {
		return fmt.Errorf("close engine: %w", err)
	}
	return nil
}

// formWork takes a form to the next and adds to the report. Its context outlives the request.
type formWork func(ctx context.Context, f *Form, report *Report) *Form

// await starts work on the form and waits for it until the deadline. If it finishes in time, await returns the form that the work returned.
// Otherwise it returns the form with what had been committed by then, and the work goes on.
func (f *Form) await(ctx context.Context, reason session.Reason, work formWork) (next *Form, report Report, inTime bool) {
	own, err := f.start(ctx, reason, false, work)
	if err != nil {
		f.attempted(&report, Attempt{Reason: reason, Err: err})
		return f, report, false
	}
	own.Wait(ctx, f.deadline())
	soFar := f.waits.soFar + f.turn.engine.o.Now().Sub(own.Begun)
	got, inTime := own.Take()
	next = cmp.Or(got.form, f).with(func(next *Form) {
		next.waits = waits{soFar: soFar, later: next.waits.later}
		next.relief.onTrial = false // it may be set in what was committed
	})
	report = got.report
	if !inTime {
		next.attempted(&report, Attempt{Reason: reason, Err: ErrDeadline})
	}
	return next, report, inTime
}

// start starts work on the form, in a goroutine that the engine owns and that holds the body.
func (f *Form) start(ctx context.Context, reason session.Reason, ahead bool, work formWork) (*task, error) {
	in := f.turn.in
	t := summaries.Task{
		Thread: f.place.Thread.ID, Head: f.turn.history.Head(), Owner: in.Tenant.Name, Ahead: ahead, Quick: !ahead && f.neverWaits(),
	}
	if in.Tenant.Anonymous {
		t.Owner += "\x00" + in.Credential
	}
	var report Report // of the work alone
	in.Body.Hold()
	own, err := f.turn.engine.summaries.Start(f.billed(ctx), t, summaries.Work[progress]{
		Make: func(ctx context.Context, own *task) progress {
			f = f.with(func(next *Form) { next.waits.task = own })
			next := work(ctx, f.resolved(ctx).knowing(), &report)
			return progress{next, report}
		},
		Panicked: func(so progress, value any) progress {
			report.Panic = value
			f.attempted(&report, Attempt{Reason: reason, Err: fmt.Errorf("condense: panic: %v", value)})
			return progress{cmp.Or(so.form, f), report}
		},
		Late: func(taken, final progress) {
			if in.Late != nil {
				final.report.Attempts = final.report.Attempts[len(taken.report.Attempts):]
				in.Late(final.report)
			}
		},
		Done: in.Body.Release,
	})
	if err != nil {
		in.Body.Release()
		return nil, fmt.Errorf("start condensation: %w", err)
	}
	return own, nil
}

// joinTask waits for a condensation that an earlier attempt at the same request started, and returns the form with its result. It reports
// whether there was one.
func (f *Form) joinTask(ctx context.Context) (*Form, bool) {
	other := f.turn.engine.summaries.Find(f.place.Thread.ID)
	if other == nil || other.Head != f.turn.history.Head() || other.Ahead || f.neverWaits() && !other.Quick {
		return f, false
	}
	ctx, done := f.announce(ctx, condense.Need{})
	defer done(nil)
	begun := f.turn.engine.o.Now()
	inTime := other.Wait(ctx, f.deadline())
	f = f.with(func(next *Form) { next.waits.soFar += next.turn.engine.o.Now().Sub(begun) })
	if !inTime {
		return f, true
	}
	if f.place.New { // another request may have begun the thread meanwhile
		var err error
		if f, err = f.logNew(ctx); err != nil {
			return f, true
		}
	}
	f, _, _ = f.overtaken(ctx) // if it cannot be read, the view stays as it is
	return f, true
}

// DefaultDeadline is how long a request waits for a condensation unless its tenant's configuration says otherwise.
const DefaultDeadline = 20 * time.Second

// DefaultCondenseTimeout is how long one condensation may take, unless its tenant's summarisers need more.
const DefaultCondenseTimeout = 5 * time.Minute

// deadline returns how long the request still waits for a condensation. The tenant's deadline bounds all its waits together. Once it is
// spent, a condensation is made without a model, for which the last tenth is more than enough.
func (f *Form) deadline() time.Duration {
	d := f.turn.longestWait()
	return max(d-f.waits.soFar, d/10)
}

// spent reports whether the request has waited for as long as it may.
func (f *Form) spent() bool { return f.waits.soFar > f.turn.longestWait()*9/10 }

func (t *Turn) longestWait() time.Duration { return cmp.Or(t.in.Tenant.Deadline, DefaultDeadline) }

// condenseTimeout returns how long one condensation of a task may take. A hard one has to leave time to fall back to a condensation without
// a model, and to log that.
func (f *Form) condenseTimeout(need condense.Need) time.Duration {
	limit := cmp.Or(f.turn.in.Tenant.CondenseTimeout, DefaultCondenseTimeout)
	if !need.Hard {
		return limit
	}
	left := f.deadline()
	left = max(left-f.turn.engine.o.Now().Sub(f.waits.task.Begun), left/10)
	return min(left*9/10, limit)
}

// dueSoon returns the condensation by a model that will soon be due, nil if there is none. The window may be reached by our own count first.
func (f *Form) dueSoon(fixed, total int) condense.Job {
	for _, need := range [...]condense.Need{{Ahead: true}, {Ahead: true, WindowOnly: true}} {
		d := f.turn.in.Tenant.Condenser.Condense(f.inputFor(need, fixed, total))
		if d.Job != nil && d.Job.Asks() {
			return d.Job
		}
	}
	return nil
}

// prepare starts writing the summary that will soon be due, so that no request has to wait for it.
func (f *Form) prepare(ctx context.Context) {
	base, known := f.turn.engine.summaries.Prepared(f.place.Thread.ID)
	prepared := known && base == f.lastApplied()
	running := f.turn.engine.summaries.Find(f.place.Thread.ID) != nil
	ahead := f.turn.in.Tenant.Ahead && !f.losesSummaries() && !f.mayNotReturn()
	if !ahead || f.turn.in.Tenant.Passes() || f.turn.purpose.Spares() || prepared || running || f.dueSoon(f.turn.fixed(), f.maxTokens()) == nil {
		return
	}
	job := f.dueSoon(f.turn.counted().fixed, f.size().Tokens)
	if job == nil {
		return
	}
	f.runAhead(ctx, job.Need(), func(ctx context.Context, f *Form) Attempt {
		job := f.dueSoon(f.turn.counted().fixed, f.size().Tokens)
		ready, err := f.prepared(ctx)
		newest := f.shown.view.Newest()
		lacked := newest != nil && slices.Equal(ready.Forgotten, newest.Forgotten) // the summary that the newest condensation lacks
		tried, found := Attempt{}, err == nil && !lacked
		switch {
		case found && ready.ID.Thread != f.place.Thread.ID: // an ancestor's: later threads find it here
			tried.Err = f.turn.registry.Prepare(ctx, f.at(), &f.shown.view, ready)
		case job != nil && !found && !f.ancestorPrepares(ctx):
			tried = f.storePrepared(ctx, job)
			found = tried.Err == nil
		}
		if found {
			f.turn.engine.summaries.SetPrepared(f.place.Thread.ID, f.lastApplied())
		}
		return tried
	})
}

// ancestorPrepares reports whether a condensation is being prepared for an ancestor of the thread, or that cannot be found out.
func (f *Form) ancestorPrepares(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	busy, err := f.turn.registry.Preparing(ctx, f.at())
	return busy || err != nil
}

// summariseLater starts writing the summary that excerpts stand in for, or if there is none, one that will soon be due. If another summary of the
// thread is being written, which does not fit the excerpts any more, theirs is written next. It returns the form without that job.
func (f *Form) summariseLater(ctx context.Context) *Form {
	job := f.waits.later
	f = f.with(func(next *Form) { next.waits.later = nil })
	switch {
	case job == nil:
		f.prepare(ctx)
		return f
	case !f.turn.in.Tenant.Ahead || f.losesSummaries() || f.mayNotReturn() && !job.Need().Hard:
		return f
	}
	f.turn.in.Body.Hold()
	start := func(run bool) {
		defer f.turn.in.Body.Release()
		if run && !f.turn.engine.settings.Load().tenant(f.turn.in.Tenant.Name).Passes() { // it may have been switched off meanwhile
			f.runAhead(ctx, job.Need(), func(ctx context.Context, f *Form) Attempt { return f.storePrepared(ctx, job) })
		}
	}
	if !f.turn.engine.summaries.After(f.place.Thread.ID, start) {
		start(true)
	}
	return f
}

// runAhead runs work under the thread's lock while no request waits for it. If another request works on the thread, or too many
// condensations are running, it is left to a later request.
func (f *Form) runAhead(ctx context.Context, need condense.Need, work func(ctx context.Context, f *Form) Attempt) {
	_, _ = f.start(ctx, need.Reason, true, func(ctx context.Context, f *Form, report *Report) *Form {
		ctx, cancel := context.WithTimeout(ctx, f.condenseTimeout(need))
		defer cancel()
		f, held, release, err := f.lockThread(ctx, false)
		if errors.Is(err, session.ErrLocked) {
			return f
		}
		tried := Attempt{Err: err}
		if err == nil {
			defer release()
			base := f.lastApplied()
			f, _, tried.Err = f.overtaken(ctx)
			if tried.Err == nil && f.lastApplied() == base {
				tried = work(held, f)
			}
		}
		if tried.Err != nil {
			tried.Reason, tried.Err = need.Reason, fmt.Errorf("prepare: %w", tried.Err)
		}
		if tried.Reason != "" { // empty: nothing was due any more
			f.attempted(report, tried)
		}
		return f
	})
}

// storePrepared makes a condensation and stores it as prepared, unless the one that is prepared has been corrected: that applies first, and the
// next one is made on top of it.
func (f *Form) storePrepared(ctx context.Context, job condense.Job) Attempt {
	switch ready, err := f.prepared(ctx); {
	case err == nil && record.Parse(ready.Summary).Corrected:
		return Attempt{}
	case errors.Is(err, session.ErrUnavailable):
		return Attempt{Err: err}
	}
	tried, _ := f.runJob(ctx, job)
	if tried.Err != nil {
		return tried
	}
	made := *tried.Made
	tried.Made, tried.Fallback = nil, nil // it is not logged yet
	ctx, cancel := context.WithTimeout(ctx, writeFactor*f.turn.engine.o.Limits.Store)
	defer cancel()
	tried.Err = f.turn.registry.Prepare(ctx, f.at(), &f.shown.view, made)
	if tried.Err != nil { // a store may keep it later than it says so
		f.turn.engine.summaries.NoteWrite(tried.Err)
	}
	return tried
}

// lastApplied returns the id of the view's newest condensation, zero if it has none.
func (f *Form) lastApplied() session.CondensationID {
	if c := f.shown.view.Newest(); c != nil {
		return c.ID
	}
	return session.CondensationID{}
}

// prepared returns the condensation prepared for the view, or session.ErrNotFound.
func (f *Form) prepared(ctx context.Context) (session.Condensation, error) {
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	return f.turn.registry.Prepared(ctx, f.at(), &f.shown.view)
}

// usePrepared logs and shows the prepared condensation. It reports whether the view has changed, which includes a condensation that
// another request logged meanwhile. It needs no lock: of two condensations, the first one logged counts.
func (f *Form) usePrepared(ctx context.Context, need condense.Need, report *Report) (*Form, bool) {
	if !f.turn.in.Tenant.Ahead || f.place.New && f.place.Thread.Parent == "" {
		return f, false
	}
	c, err := f.prepared(ctx)
	if err != nil {
		return f, false // the caller makes another one
	}
	if f, err = f.logNew(ctx); err != nil {
		return f, false
	}
	f, changed, err := f.overtaken(ctx)
	if err != nil || changed {
		return f, changed
	}
	c.Reason, c.Stripped, c.Time = need.Reason, f.turn.history.LastSealed(), time.Time{}
	return f.commit(ctx, Attempt{Reason: c.Reason, Made: &c}, nil, report)
}

// coldAfter is the idle time after which no provider has a prefix in its cache any more.
const coldAfter = time.Hour

// catchUp replaces excerpts by the summary prepared for them, once the cache is cold, so that the changed prefix costs nothing extra.
func (f *Form) catchUp(ctx context.Context, report *Report) *Form {
	newest := f.shown.view.Newest()
	if newest == nil || !newest.Provisional || f.thread().Idle < coldAfter || f.turn.in.Tenant.Passes() ||
		f.turn.purpose.Spares() || f.place.Again || f.place.Match == session.MatchReplay {
		return f
	}
	need := condense.Need{Reason: newest.Reason}
	f, step, _ := f.await(ctx, need.Reason, func(ctx context.Context, f *Form, report *Report) *Form {
		f, _ = f.usePrepared(ctx, need, report)
		return f
	})
	report.add(step)
	return f
}
