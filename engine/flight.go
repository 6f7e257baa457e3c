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

	turn   *Turn // the copy it works on. The request takes turn and report over once the flight has finished
	report Report
	done   chan struct{} // closed at the end

	mu         chanMutex // held while a condensation is logged, so that a request goes on either without it or with all of it
	abandoned  bool      // the request that started it has gone on without it
	finished   bool
	checkpoint *Turn     // copy of turn as of the last condensation logged; nil: none
	attempts   []Attempt // report.Attempts as of the checkpoint: those that an abandoning request reports itself
}

// flightWork works on a copy of a turn and adds to its report. Its context outlives the request.
type flightWork func(ctx context.Context, c *Turn, report *Report)

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

// runFlight starts work on a copy of the turn and waits for it until the deadline. If work finishes in time, the turn becomes the copy.
// Otherwise the turn continues with what had been logged by then, and so does the work.
func (t *Turn) runFlight(ctx context.Context, reason session.Reason, work flightWork) (report Report, inTime bool) {
	f, err := t.startFlight(ctx, reason, false, work)
	if err != nil {
		t.attempted(&report, Attempt{Reason: reason, Err: err})
		return report, false
	}
	f.await(ctx, t.deadline())
	soFar := t.wait.soFar + t.engine.o.Now().Sub(f.begun)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.finished:
		*t, report = *f.turn, f.report
	case f.checkpoint != nil:
		*t, report.Attempts = *f.checkpoint, slices.Clone(f.attempts)
	}
	t.wait = waitState{soFar: soFar, later: t.wait.later}
	if !f.finished {
		f.abandoned = true
		t.attempted(&report, Attempt{Reason: reason, Err: ErrDeadline})
	}
	return report, f.finished
}

// startFlight starts work on a copy of the turn, in a goroutine that the engine owns.
func (t *Turn) startFlight(ctx context.Context, reason session.Reason, ahead bool, work flightWork) (*flight, error) {
	in, all := t.in, t.engine.flights
	f := &flight{
		thread: t.place.Thread.ID, head: t.history.Head(), owner: in.Tenant.Name, begun: t.engine.o.Now(), ahead: ahead, abandoned: ahead,
		quick: !ahead && t.neverWaits(), done: make(chan struct{}), mu: make(chanMutex, 1),
	}
	if in.Tenant.Anonymous {
		f.owner += "\x00" + in.Credential
	}
	if err := all.add(f); err != nil {
		return nil, err
	}
	f.turn = t.copyFor(f)
	in.Body.Hold()
	outliving, cancel := context.WithCancel(context.WithoutCancel(f.turn.billed(ctx)))
	stop := context.AfterFunc(all.ctx, cancel)
	go func() {
		// In reverse order: a panic becomes a failed attempt, the flight finishes, and then it is removed and its body released.
		defer in.Body.Release()
		defer all.remove(f)
		defer cancel()
		defer stop()
		defer f.finish(in.Late)
		defer func() {
			if v := recover(); v != nil {
				f.report.Panic = v
				f.turn.attempted(&f.report, Attempt{Reason: reason, Err: fmt.Errorf("condense: panic: %v", v)})
			}
		}()
		f.turn.resolveLogged(outliving)
		work(outliving, f.turn, &f.report)
	}()
	return f, nil
}

// copyFor returns a copy of the turn for a flight to work on. They share nothing that is written to.
func (t *Turn) copyFor(f *flight) *Turn {
	c := *t
	c.wait.flight = f
	c.made = slices.Clone(t.made)
	c.place = clonePlace(t.place)
	return &c
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

// joinFlight waits for a condensation that an earlier attempt at the same request started, and shows its result. It reports whether
// there was one.
func (t *Turn) joinFlight(ctx context.Context) bool {
	f := t.engine.flights.find(t.place.Thread.ID)
	if f == nil || f.head != t.history.Head() || f.ahead || t.neverWaits() && !f.quick {
		return false
	}
	ctx, done := t.announce(ctx, condense.Need{})
	defer done()
	begun := t.engine.o.Now()
	inTime := f.await(ctx, t.deadline())
	t.wait.soFar += t.engine.o.Now().Sub(begun)
	if inTime && (!t.place.New || t.logNew(ctx) == nil) { // another request may have begun the thread meanwhile
		_, _ = t.overtaken(ctx) // if it cannot be read, the view stays as it is
	}
	return true
}

// DefaultDeadline is how long a request waits for a condensation unless its tenant's configuration says otherwise.
const DefaultDeadline = 20 * time.Second

// DefaultCondenseTimeout is how long one condensation may take, unless its tenant's summarisers need more.
const DefaultCondenseTimeout = 5 * time.Minute

// deadline returns how long the request still waits for a condensation. The tenant's deadline bounds all its waits together. Once it is
// spent, a condensation is made without a model, for which the last tenth is more than enough.
func (t *Turn) deadline() time.Duration {
	d := t.longestWait()
	return max(d-t.wait.soFar, d/10)
}

// spent reports whether the request has waited for as long as it may.
func (t *Turn) spent() bool { return t.wait.soFar > t.longestWait()*9/10 }

func (t *Turn) longestWait() time.Duration { return cmp.Or(t.in.Tenant.Deadline, DefaultDeadline) }

// condenseTimeout returns how long one condensation of a flight may take. A hard one has to leave time to fall back to a condensation without
// a model, and to log that.
func (t *Turn) condenseTimeout(need condense.Need) time.Duration {
	limit := cmp.Or(t.in.Tenant.CondenseTimeout, DefaultCondenseTimeout)
	if !need.Hard {
		return limit
	}
	left := t.deadline()
	left = max(left-t.engine.o.Now().Sub(t.wait.flight.begun), left/10)
	return min(left*9/10, limit)
}

// dueSoon returns the condensation by a model that will soon be due, nil if there is none. The window may be reached by our own count first.
func (t *Turn) dueSoon(fixed, total int) condense.Job {
	for _, need := range [...]condense.Need{{Ahead: true}, {Ahead: true, WindowOnly: true}} {
		d := t.in.Tenant.Condenser.Condense(t.inputFor(need, fixed, total))
		if d.Job != nil && d.Job.Asks() {
			return d.Job
		}
	}
	return nil
}

// prepare starts writing the summary that will soon be due, so that no request has to wait for it.
func (t *Turn) prepare(ctx context.Context) {
	base, known := t.engine.memory.ready.Get(t.place.Thread.ID)
	prepared := known && base == t.lastApplied()
	running := t.engine.flights.find(t.place.Thread.ID) != nil
	ahead := t.in.Tenant.Ahead && !t.losesSummaries()
	if !ahead || t.in.Tenant.Passes() || t.purpose.Spares() || prepared || running || t.dueSoon(t.fixed(), t.maxTokens()) == nil {
		return
	}
	job := t.dueSoon(t.counted().fixed, t.size().Tokens)
	if job == nil {
		return
	}
	t.runAhead(ctx, job.Need(), func(ctx context.Context, c *Turn) Attempt {
		job := c.dueSoon(c.counted().fixed, c.size().Tokens)
		ready, err := c.prepared(ctx)
		newest := c.shown.view.Newest()
		lacked := newest != nil && slices.Equal(ready.Forgotten, newest.Forgotten) // the summary that the newest condensation lacks
		tried, found := Attempt{}, err == nil && !lacked
		switch {
		case found && ready.ID.Thread != c.place.Thread.ID: // an ancestor's: later threads find it here
			tried.Err = c.registry.Prepare(ctx, &c.place, &c.shown.view, ready)
		case job != nil && !found && !c.ancestorPrepares(ctx):
			tried = c.storePrepared(ctx, job)
			found = tried.Err == nil
		}
		if found {
			c.engine.memory.ready.Add(c.place.Thread.ID, c.lastApplied())
		}
		return tried
	})
}

// ancestorPrepares reports whether a condensation is being prepared for an ancestor of the thread, or that cannot be found out.
func (t *Turn) ancestorPrepares(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	busy, err := t.registry.Preparing(ctx, &t.place)
	return busy || err != nil
}

// summariseLater starts writing the summary for which excerpts stand in, or else one that will soon be due. If one is being written, which
// the excerpts have overtaken, theirs is next.
func (t *Turn) summariseLater(ctx context.Context) {
	job := t.wait.later
	switch t.wait.later = nil; {
	case job == nil:
		t.prepare(ctx)
		return
	case !t.in.Tenant.Ahead || t.losesSummaries():
		return
	}
	c := t.copyFor(nil)
	c.in.Body.Hold()
	start := func(run bool) {
		defer c.in.Body.Release()
		if run && !c.engine.settings.Load().tenant(c.in.Tenant.Name).Passes() { // it may have been switched off meanwhile
			c.runAhead(ctx, job.Need(), func(ctx context.Context, c *Turn) Attempt { return c.storePrepared(ctx, job) })
		}
	}
	if !t.engine.flights.postpone(t.place.Thread.ID, start) {
		start(true)
	}
}

// runAhead runs work under the thread's lock while no request waits for it. If another request works on the thread, or too many
// condensations are running, it is left to a later request.
func (t *Turn) runAhead(ctx context.Context, need condense.Need, work func(ctx context.Context, c *Turn) Attempt) {
	_, _ = t.startFlight(ctx, need.Reason, true, func(ctx context.Context, c *Turn, report *Report) {
		ctx, cancel := context.WithTimeout(ctx, c.condenseTimeout(need))
		defer cancel()
		held, release, err := c.lockThread(ctx, false)
		if errors.Is(err, session.ErrLocked) {
			return
		}
		tried := Attempt{Err: err}
		if err == nil {
			defer release()
			base := c.lastApplied()
			_, tried.Err = c.overtaken(ctx)
			if tried.Err == nil && c.lastApplied() == base {
				tried = work(held, c)
			}
		}
		if tried.Err != nil {
			tried.Reason, tried.Err = need.Reason, fmt.Errorf("prepare: %w", tried.Err)
		}
		if tried.Reason != "" { // empty: nothing was due any more
			c.attempted(report, tried)
		}
	})
}

// storePrepared makes a condensation and stores it as prepared.
func (t *Turn) storePrepared(ctx context.Context, job condense.Job) Attempt {
	tried, _ := t.runJob(ctx, job)
	if tried.Err != nil {
		return tried
	}
	made := *tried.Made
	tried.Made, tried.Fallback = nil, nil // it is not logged yet
	ctx, cancel := context.WithTimeout(ctx, writeFactor*t.engine.o.Limits.Store)
	defer cancel()
	tried.Err = t.registry.Prepare(ctx, &t.place, &t.shown.view, made)
	if tried.Err != nil { // a store may keep it later than it says so
		t.engine.noteWrite(tried.Err)
	}
	return tried
}

// lastApplied returns the id of the view's newest condensation, zero if it has none.
func (t *Turn) lastApplied() session.CondensationID {
	if c := t.shown.view.Newest(); c != nil {
		return c.ID
	}
	return session.CondensationID{}
}

// prepared returns the condensation prepared for the view, or session.ErrNotFound.
func (t *Turn) prepared(ctx context.Context) (session.Condensation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	return t.registry.Prepared(ctx, &t.place, &t.shown.view)
}

// usePrepared logs and shows the prepared condensation. It reports whether the view has changed, which includes a condensation that
// another request logged meanwhile. It needs no lock: of two condensations, the first one logged counts.
func (t *Turn) usePrepared(ctx context.Context, need condense.Need, report *Report) bool {
	if !t.in.Tenant.Ahead || t.place.New && t.place.Thread.Parent == "" {
		return false
	}
	c, err := t.prepared(ctx)
	if err != nil || t.logNew(ctx) != nil {
		return false // the caller makes another one
	}
	if changed, err := t.overtaken(ctx); err != nil || changed {
		return changed
	}
	c.Reason, c.Stripped, c.Time = need.Reason, t.history.LastSealed(), time.Time{}
	return t.commit(ctx, Attempt{Reason: c.Reason, Made: &c}, nil, report)
}

// coldAfter is the idle time after which no provider has a prefix in its cache any more.
const coldAfter = time.Hour

// catchUp replaces excerpts by the summary prepared for them, once the cache is cold, so that the changed prefix costs nothing extra.
func (t *Turn) catchUp(ctx context.Context) Report {
	newest := t.shown.view.Newest()
	if newest == nil || !newest.Provisional || t.thread().Idle < coldAfter || t.in.Tenant.Passes() ||
		t.purpose.Spares() || t.place.Again || t.place.Match == session.MatchReplay {
		return Report{}
	}
	need := condense.Need{Reason: newest.Reason}
	report, _ := t.runFlight(ctx, need.Reason, func(ctx context.Context, c *Turn, report *Report) { c.usePrepared(ctx, need, report) })
	return report
}
