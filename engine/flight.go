package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrDeadline is reported when a request goes on without a condensation that took longer than it waits.
var ErrDeadline = errors.New("the condensation was not ready before the deadline; it continues for the next request")

// ErrCrowded is reported when a condensation does not start because too many are running.
var ErrCrowded = errors.New("too many condensations are running")

// Limits on concurrent condensations, in total and for each tenant or anonymous client. Those whose clients have left count, too: a
// client cannot pile them up by leaving.
const (
	maxFlights         = 1024
	maxFlightsPerOwner = 64
)

// flight is a running condensation. The engine owns it: it continues even if the request that started it gives up, holds the
// request's body until it ends, and can be joined by a retry.
type flight struct {
	thread session.ThreadID // being condensed
	head   session.Hash     // of its history
	owner  string           // tenant, or anonymous client, for maxFlightsPerOwner
	begun  time.Time
	ahead  bool // prepares a summary that is not due yet: no request waits for it
	quick  bool // does not wait for a model

	next func(run bool) // starts, or drops, the work that waits for the end of a flight that is ahead; guarded by flights.mu. nil: none

	form   *Form // at the end. The request takes form and report over once the flight has finished
	report Report
	done   chan struct{} // closed at the end

	mu         chanMutex // held while a condensation is logged, so that a request goes on either without it or with all of it
	abandoned  bool      // the request that started it has gone on without it
	finished   bool
	checkpoint *Form     // with the last condensation logged; nil: none
	attempts   []Attempt // report.Attempts as of the checkpoint: those that an abandoning request reports itself
}

// flightWork takes a form to the next and adds to the report. Its context outlives the request.
type flightWork func(ctx context.Context, f *Form, report *Report) *Form

// chanMutex is a mutex on which a goroutine is durably blocked, as testing/synctest needs it.
type chanMutex chan struct{}

func (m chanMutex) Lock()   { m <- struct{}{} }
func (m chanMutex) Unlock() { <-m }

// flights are the running flights of an engine.
type flights struct {
	mu       sync.Mutex
	byThread map[session.ThreadID]*flight // the last one started for each
	ahead    map[session.ThreadID]*flight // the one that prepares a summary
	count    int                          // of all
	perOwner map[string]int
	closed   bool
	work     sync.WaitGroup
	cpus     chan struct{}   // semaphore for compute
	ctx      context.Context // ends when the engine is closed
	cancel   context.CancelFunc
}

func newFlights() *flights {
	f := &flights{
		byThread: map[session.ThreadID]*flight{}, ahead: map[session.ThreadID]*flight{}, perOwner: map[string]int{},
		cpus: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close waits for running condensations until ctx ends, and then cancels them.
func (e *Engine) Close(ctx context.Context) error {
	f := e.flights
	f.mu.Lock()
	f.closed = true
	idle := f.count == 0
	f.mu.Unlock()
	defer f.cancel()
	stop := context.AfterFunc(ctx, f.cancel)
	f.work.Wait()
	if cancelled := !stop(); cancelled && !idle {
		return fmt.Errorf("close engine: %w", ctx.Err())
	}
	return nil
}

// add registers a flight. If a thread has several, find returns the last one added.
func (f *flights) add(flight *flight) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.count >= maxFlights || f.perOwner[flight.owner] >= maxFlightsPerOwner {
		return ErrCrowded
	}
	f.byThread[flight.thread] = flight
	if flight.ahead && f.ahead[flight.thread] == nil {
		f.ahead[flight.thread] = flight
	}
	f.count++
	f.perOwner[flight.owner]++
	f.work.Add(1)
	return nil
}

// remove unregisters a flight and wakes those who wait for it.
func (f *flights) remove(flight *flight) {
	f.mu.Lock()
	f.count--
	f.perOwner[flight.owner]--
	if f.perOwner[flight.owner] == 0 {
		delete(f.perOwner, flight.owner)
	}
	if f.byThread[flight.thread] == flight {
		delete(f.byThread, flight.thread)
	}
	if f.ahead[flight.thread] == flight {
		delete(f.ahead, flight.thread)
	}
	f.mu.Unlock()
	close(flight.done)
	if flight.next != nil { // postpone no longer finds this flight
		flight.next(true)
	}
	f.work.Done()
}

// postpone has next called at the end of the flight that prepares a summary for a thread, in place of what waited for that before. It reports
// false if there is no such flight.
func (f *flights) postpone(thread session.ThreadID, next func(run bool)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	running := f.ahead[thread]
	if running == nil {
		return false
	}
	if running.next != nil {
		running.next(false)
	}
	running.next = next
	return true
}

// find returns the flight of a thread, nil if it has none.
func (f *flights) find(thread session.ThreadID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byThread[thread]
}

// compute runs CPU-bound work, on at most half of the processors at a time. It fails if ctx ends before run can start.
func (f *flights) compute(ctx context.Context, run func()) error {
	select {
	case f.cpus <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
	defer func() { <-f.cpus }()
	run()
	return nil
}

// runFlight starts work on the form and waits for it until the deadline. If it finishes in time, it returns the form that the work returned.
// Otherwise it returns the form with what had been logged by then, and the work goes on.
func (f *Form) runFlight(ctx context.Context, reason session.Reason, work flightWork) (next *Form, report Report, inTime bool) {
	own, err := f.startFlight(ctx, reason, false, work)
	if err != nil {
		f.attempted(&report, Attempt{Reason: reason, Err: err})
		return f, report, false
	}
	own.await(ctx, f.deadline())
	soFar := f.waits.soFar + f.engine.o.Now().Sub(own.begun)
	own.mu.Lock()
	defer own.mu.Unlock()
	next = f
	switch {
	case own.finished:
		next, report = own.form, own.report
	case own.checkpoint != nil:
		next, report.Attempts = own.checkpoint, slices.Clone(own.attempts)
	}
	next = next.with(func(next *Form) {
		next.waits = waits{soFar: soFar, later: next.waits.later}
		next.relief.onTrial = false // it may be set in a checkpoint
	})
	if !own.finished {
		own.abandoned = true
		next.attempted(&report, Attempt{Reason: reason, Err: ErrDeadline})
	}
	return next, report, own.finished
}

// startFlight starts work on the form, in a goroutine that the engine owns.
func (f *Form) startFlight(ctx context.Context, reason session.Reason, ahead bool, work flightWork) (*flight, error) {
	in, all := f.in, f.engine.flights
	own := &flight{
		thread: f.place.Thread.ID, head: f.history.Head(), owner: in.Tenant.Name, begun: f.engine.o.Now(), ahead: ahead, abandoned: ahead,
		quick: !ahead && f.neverWaits(), done: make(chan struct{}), mu: make(chanMutex, 1),
	}
	if in.Tenant.Anonymous {
		own.owner += "\x00" + in.Credential
	}
	if err := all.add(own); err != nil {
		return nil, err
	}
	own.form = f.with(func(next *Form) { next.waits.flight = own })
	in.Body.Hold()
	outliving, cancel := context.WithCancel(context.WithoutCancel(f.billed(ctx)))
	stop := context.AfterFunc(all.ctx, cancel)
	go func() {
		// In reverse order: a panic becomes a failed attempt, the flight finishes, and then it is removed and its body released.
		defer in.Body.Release()
		defer all.remove(own)
		defer cancel()
		defer stop()
		defer own.finish(in.Late)
		defer func() {
			if v := recover(); v != nil {
				own.report.Panic = v
				own.form = cmp.Or(own.checkpoint, own.form)
				own.form.attempted(&own.report, Attempt{Reason: reason, Err: fmt.Errorf("condense: panic: %v", v)})
			}
		}()
		own.form = own.form.resolved(outliving)
		own.form = work(outliving, own.form, &own.report)
	}()
	return own, nil
}

// clonePlace returns a copy of r that can be written to while r is read.
func clonePlace(r session.Resolution) session.Resolution {
	if r.Base != nil {
		base := clonePlace(*r.Base)
		r.Base = &base
	}
	return r
}

// await waits for the end of a flight, and reports whether it came before the deadline and the end of ctx.
func (f *flight) await(ctx context.Context, deadline time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// finish marks a flight as finished. If its request has abandoned it, late receives what the request did not report.
func (f *flight) finish(late func(Report)) {
	f.mu.Lock()
	f.finished = true
	abandoned := f.abandoned
	f.mu.Unlock()
	if abandoned && late != nil {
		defer func() { _ = recover() }() // a panic in the callback must not end the process
		report := f.report
		report.Attempts = report.Attempts[len(f.attempts):]
		late(report)
	}
}

// joinFlight waits for a condensation that an earlier attempt at the same request started, and returns the form with its result. It reports
// whether there was one.
func (f *Form) joinFlight(ctx context.Context) (*Form, bool) {
	other := f.engine.flights.find(f.place.Thread.ID)
	if other == nil || other.head != f.history.Head() || other.ahead || f.neverWaits() && !other.quick {
		return f, false
	}
	ctx, done := f.announce(ctx, condense.Need{})
	defer done(nil)
	begun := f.engine.o.Now()
	inTime := other.await(ctx, f.deadline())
	f = f.with(func(next *Form) { next.waits.soFar += next.engine.o.Now().Sub(begun) })
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
	d := f.longestWait()
	return max(d-f.waits.soFar, d/10)
}

// spent reports whether the request has waited for as long as it may.
func (f *Form) spent() bool { return f.waits.soFar > f.longestWait()*9/10 }

func (t *Turn) longestWait() time.Duration { return cmp.Or(t.in.Tenant.Deadline, DefaultDeadline) }

// condenseTimeout returns how long one condensation of a flight may take. A hard one has to leave time to fall back to a condensation without
// a model, and to log that.
func (f *Form) condenseTimeout(need condense.Need) time.Duration {
	limit := cmp.Or(f.in.Tenant.CondenseTimeout, DefaultCondenseTimeout)
	if !need.Hard {
		return limit
	}
	left := f.deadline()
	left = max(left-f.engine.o.Now().Sub(f.waits.flight.begun), left/10)
	return min(left*9/10, limit)
}

// dueSoon returns the condensation by a model that will soon be due, nil if there is none. The window may be reached by our own count first.
func (f *Form) dueSoon(fixed, total int) condense.Job {
	for _, need := range [...]condense.Need{{Ahead: true}, {Ahead: true, WindowOnly: true}} {
		d := f.in.Tenant.Condenser.Condense(f.inputFor(need, fixed, total))
		if d.Job != nil && d.Job.Asks() {
			return d.Job
		}
	}
	return nil
}

// prepare starts writing the summary that will soon be due, so that no request has to wait for it.
func (f *Form) prepare(ctx context.Context) {
	base, known := f.engine.memory.ready.Get(f.place.Thread.ID)
	prepared := known && base == f.lastApplied()
	running := f.engine.flights.find(f.place.Thread.ID) != nil
	ahead := f.in.Tenant.Ahead && !f.losesSummaries()
	if !ahead || f.in.Tenant.Passes() || f.purpose.Spares() || prepared || running || f.dueSoon(f.fixed(), f.maxTokens()) == nil {
		return
	}
	job := f.dueSoon(f.counted().fixed, f.size().Tokens)
	if job == nil {
		return
	}
	f.runAhead(ctx, job.Need(), func(ctx context.Context, f *Form) Attempt {
		job := f.dueSoon(f.counted().fixed, f.size().Tokens)
		ready, err := f.prepared(ctx)
		newest := f.shown.view.Newest()
		lacked := newest != nil && slices.Equal(ready.Forgotten, newest.Forgotten) // the summary that the newest condensation lacks
		tried, found := Attempt{}, err == nil && !lacked
		switch {
		case found && ready.ID.Thread != f.place.Thread.ID: // an ancestor's: later threads find it here
			tried.Err = f.registry.Prepare(ctx, f.at(), &f.shown.view, ready)
		case job != nil && !found && !f.ancestorPrepares(ctx):
			tried = f.storePrepared(ctx, job)
			found = tried.Err == nil
		}
		if found {
			f.engine.memory.ready.Add(f.place.Thread.ID, f.lastApplied())
		}
		return tried
	})
}

// ancestorPrepares reports whether a condensation is being prepared for an ancestor of the thread, or that cannot be found out.
func (f *Form) ancestorPrepares(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.engine.o.Limits.Store)
	defer cancel()
	busy, err := f.registry.Preparing(ctx, f.at())
	return busy || err != nil
}

// summariseLater starts writing the summary for which excerpts stand in, or else one that will soon be due. If one is being written, which
// the excerpts have overtaken, theirs is next. It returns the form without that job.
func (f *Form) summariseLater(ctx context.Context) *Form {
	job := f.waits.later
	f = f.with(func(next *Form) { next.waits.later = nil })
	switch {
	case job == nil:
		f.prepare(ctx)
		return f
	case !f.in.Tenant.Ahead || f.losesSummaries():
		return f
	}
	f.in.Body.Hold()
	start := func(run bool) {
		defer f.in.Body.Release()
		if run && !f.engine.settings.Load().tenant(f.in.Tenant.Name).Passes() { // it may have been switched off meanwhile
			f.runAhead(ctx, job.Need(), func(ctx context.Context, f *Form) Attempt { return f.storePrepared(ctx, job) })
		}
	}
	if !f.engine.flights.postpone(f.place.Thread.ID, start) {
		start(true)
	}
	return f
}

// runAhead runs work under the thread's lock while no request waits for it. If another request works on the thread, or too many
// condensations are running, it is left to a later request.
func (f *Form) runAhead(ctx context.Context, need condense.Need, work func(ctx context.Context, f *Form) Attempt) {
	_, _ = f.startFlight(ctx, need.Reason, true, func(ctx context.Context, f *Form, report *Report) *Form {
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

// storePrepared makes a condensation and stores it as prepared.
func (f *Form) storePrepared(ctx context.Context, job condense.Job) Attempt {
	tried, _ := f.runJob(ctx, job)
	if tried.Err != nil {
		return tried
	}
	made := *tried.Made
	tried.Made, tried.Fallback = nil, nil // it is not logged yet
	ctx, cancel := context.WithTimeout(ctx, writeFactor*f.engine.o.Limits.Store)
	defer cancel()
	tried.Err = f.registry.Prepare(ctx, f.at(), &f.shown.view, made)
	if tried.Err != nil { // a store may keep it later than it says so
		f.engine.noteWrite(tried.Err)
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
	ctx, cancel := context.WithTimeout(ctx, f.engine.o.Limits.Store)
	defer cancel()
	return f.registry.Prepared(ctx, f.at(), &f.shown.view)
}

// usePrepared logs and shows the prepared condensation. It reports whether the view has changed, which includes a condensation that
// another request logged meanwhile. It needs no lock: of two condensations, the first one logged counts.
func (f *Form) usePrepared(ctx context.Context, need condense.Need, report *Report) (*Form, bool) {
	if !f.in.Tenant.Ahead || f.place.New && f.place.Thread.Parent == "" {
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
	c.Reason, c.Stripped, c.Time = need.Reason, f.history.LastSealed(), time.Time{}
	return f.commit(ctx, Attempt{Reason: c.Reason, Made: &c}, nil, report)
}

// coldAfter is the idle time after which no provider has a prefix in its cache any more.
const coldAfter = time.Hour

// catchUp replaces excerpts by the summary prepared for them, once the cache is cold, so that the changed prefix costs nothing extra.
func (f *Form) catchUp(ctx context.Context, report *Report) *Form {
	newest := f.shown.view.Newest()
	if newest == nil || !newest.Provisional || f.thread().Idle < coldAfter || f.in.Tenant.Passes() ||
		f.purpose.Spares() || f.place.Again || f.place.Match == session.MatchReplay {
		return f
	}
	need := condense.Need{Reason: newest.Reason}
	f, step, _ := f.runFlight(ctx, need.Reason, func(ctx context.Context, f *Form, report *Report) *Form {
		f, _ = f.usePrepared(ctx, need, report)
		return f
	})
	report.add(step)
	return f
}
