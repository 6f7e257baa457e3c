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

// ErrDeadline is why a request went on without a condensation: it took longer than a request waits.
var ErrDeadline = errors.New("the condensation was not ready in time; it goes on for the next request")

// ErrCrowded is why a condensation did not begin.
var ErrCrowded = errors.New("too many condensations are under way")

// How many condensations may be under way at once: all, and one client's or tenant's. Those whose clients have left count, so that
// clients who leave cannot pile them up.
const (
	crowd    = 1024
	ownCrowd = 64
)

// flight is a condensation under way. It belongs to the engine: it goes on although the request that began it gives up, holds
// that request's body meanwhile, and is there for a retry to wait for.
type flight struct {
	thread session.ThreadID // that is condensed
	head   session.Hash     // of its history
	owner  string           // whose it is
	begun  time.Time
	ahead  bool // it prepares what is not due yet: no request waits for it

	turn   *Turn // the copy that it works on, and what it did; both are the request's again once it has landed
	report Report
	done   chan struct{} // closed at its end

	mu        lock      // held while a condensation is written: a request goes on either without it or with it
	abandoned bool      // the request that began it has gone on without it
	landed    bool      // it has come to its end
	reached   *Turn     // as the last condensation that was written left it; nil: none was
	attempts  []Attempt // up to then; the request that abandons it is told of these
}

// work is what a flight does, on a copy of a turn. Its context outlives the request.
type work func(ctx context.Context, c *Turn, report *Report)

// lock is a mutex that tests with a clock of their own can wait for.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// flights are those under way, by thread.
type flights struct {
	mu     sync.Mutex
	of     map[session.ThreadID]*flight // the last one of each
	count  int                          // of all
	owned  map[string]int               // by owner
	closed bool
	work   sync.WaitGroup
	busy   chan struct{}   // holds one for each condensation that takes a processor
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelFunc
}

func newFlights() *flights {
	f := &flights{of: map[session.ThreadID]*flight{}, owned: map[string]int{}, busy: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close waits for the condensations under way until ctx ends, and cuts them off then.
func (e *Engine) Close(ctx context.Context) error {
	e.warm.close()
	f := e.flights
	f.mu.Lock()
	f.closed = true
	idle := f.count == 0
	f.mu.Unlock()
	defer f.cancel()
	inTime := context.AfterFunc(ctx, f.cancel)
	if f.work.Wait(); !inTime() && !idle {
		return fmt.Errorf("close engine: %w", ctx.Err())
	}
	return nil
}

// begin registers a flight for a thread. Of several at once, the last one is found by a retry.
func (f *flights) begin(flight *flight) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.count >= crowd || f.owned[flight.owner] >= ownCrowd {
		return ErrCrowded
	}
	f.of[flight.thread] = flight
	f.count++
	f.owned[flight.owner]++
	f.work.Add(1)
	return nil
}

func (f *flights) end(flight *flight) {
	f.mu.Lock()
	f.count--
	if f.owned[flight.owner]--; f.owned[flight.owner] == 0 {
		delete(f.owned, flight.owner)
	}
	if f.of[flight.thread] == flight {
		delete(f.of, flight.thread)
	}
	f.mu.Unlock()
	close(flight.done)
	f.work.Done()
}

// compute runs what takes a processor, with all others like it on half of the processors at most. It fails if ctx ends before its turn.
func (f *flights) compute(ctx context.Context, run func()) error {
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
	defer func() { <-f.busy }()
	run()
	return nil
}

// under gives the flight of a thread, nil if there is none.
func (f *flights) under(thread session.ThreadID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[thread]
}

// fly has work done on a copy of the turn, by the engine, and reports whether that was done before the deadline: the turn is then
// the copy. Otherwise it goes on with what had been written by then, and the work goes on, too.
func (t *Turn) fly(ctx context.Context, reason session.Reason, work work) (report Report, inTime bool) {
	f, err := t.start(ctx, reason, false, work)
	if err != nil {
		t.attempted(&report, Attempt{Reason: reason, Err: err})
		return report, false
	}
	f.await(ctx, t.deadline())
	waited := t.waits.soFar + t.engine.o.Now().Sub(f.begun)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.landed {
		*t, report = *f.turn, f.report
	} else {
		if f.reached != nil {
			*t, report.Attempts = *f.reached, slices.Clone(f.attempts)
		}
		f.abandoned = true
	}
	if t.waits = (waits{soFar: waited, later: t.waits.later}); !f.landed {
		t.attempted(&report, Attempt{Reason: reason, Err: ErrDeadline})
	}
	return report, f.landed
}

// start has work done on a copy of the turn.
func (t *Turn) start(ctx context.Context, reason session.Reason, ahead bool, work work) (*flight, error) {
	in, all := t.in, t.engine.flights
	f := &flight{
		thread: t.place.Thread.ID, head: t.history.Head(), owner: in.Tenant.Name, begun: t.engine.o.Now(), ahead: ahead, abandoned: ahead,
		done: make(chan struct{}), mu: make(lock, 1),
	}
	if in.Tenant.Anonymous {
		f.owner += "\x00" + in.Credential
	}
	if err := all.begin(f); err != nil {
		return nil, err
	}
	f.turn = t.copyFor(f)
	in.Body.Hold()
	outliving, cancel := context.WithCancel(context.WithoutCancel(f.turn.billed(ctx)))
	stop := context.AfterFunc(all.ctx, cancel)
	go func() {
		defer in.Body.Release()
		defer all.end(f)
		defer cancel()
		defer stop()
		defer f.land(in.Late)
		defer func() {
			if v := recover(); v != nil {
				f.report.Panic = v
				f.turn.attempted(&f.report, Attempt{Reason: reason, Err: fmt.Errorf("condense: panic: %v", v)})
			}
		}()
		work(outliving, f.turn, &f.report)
	}()
	return f, nil
}

// copyFor is a copy of the turn that shares nothing with it that is written.
func (t *Turn) copyFor(f *flight) *Turn {
	c := *t
	c.waits.flight, c.made, c.place = f, slices.Clone(t.made), alone(t.place)
	return &c
}

// alone is a resolution of its own.
func alone(r session.Resolution) session.Resolution {
	if r.Base != nil {
		base := alone(*r.Base)
		r.Base = &base
	}
	return r
}

// await waits for a flight's end, and reports whether that came before the deadline and the request's own end.
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

// reach keeps what a flight has written so far, unless its request is gone. The caller holds f.mu.
func (f *flight) reach() {
	if !f.abandoned {
		f.reached, f.attempts = f.turn.copyFor(nil), slices.Clone(f.report.Attempts)
	}
}

// land ends a flight's work. What came of one that was abandoned is told here, since its request is not told any more.
func (f *flight) land(tell func(Report)) {
	f.mu.Lock()
	f.landed = true
	abandoned := f.abandoned
	f.mu.Unlock()
	if abandoned && tell != nil {
		defer func() { _ = recover() }() // telling must not end the process
		report := f.report
		report.Attempts = report.Attempts[len(f.attempts):]
		tell(report)
	}
}

// join waits for a condensation that an earlier try of the same request began, and shows what came of it. It reports whether
// there was one.
func (t *Turn) join(ctx context.Context) bool {
	f := t.engine.flights.under(t.place.Thread.ID)
	if f == nil || f.head != t.history.Head() || f.ahead || t.hurries() {
		return false
	}
	ctx, over := t.condensing(ctx, condense.Need{})
	defer over()
	if f.await(ctx, t.deadline()) && (!t.place.New || t.logNew(ctx) == nil) { // another request may have begun the thread meanwhile
		_, _ = t.overtaken(ctx) // what cannot be read is not shown
	}
	return true
}

// DefaultDeadline is how long a request waits for a condensation where its tenant's configuration does not say.
const DefaultDeadline = 20 * time.Second

// deadline is how long the request still waits for condensations: for all of them together it waits so long, and a tenth of that
// is left for each further one, which is enough for a condensation without a model.
func (t *Turn) deadline() time.Duration {
	d := cmp.Or(t.in.Tenant.Deadline, DefaultDeadline)
	return max(d-t.waits.soFar, d/10)
}

// patience is how long one condensation may take. One that the request cannot go without has to leave time for the way without
// a model, and to write it.
func (t *Turn) patience(need condense.Need) time.Duration {
	if !need.Hard {
		return t.engine.o.Limits.Condense
	}
	left := t.deadline()
	if t.waits.flight != nil {
		left = max(left-t.engine.o.Now().Sub(t.waits.flight.begun), left/10)
	}
	return min(left*9/10, t.engine.o.Limits.Condense)
}

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
	base, known := t.engine.memory.ready.Get(t.place.Thread.ID)
	prepared := known && base == t.base() || t.engine.flights.under(t.place.Thread.ID) != nil // or it is under way
	if !t.in.Tenant.Ahead || t.in.Tenant.Passes() || t.purpose.Spares() || prepared || t.soon(t.fixed(), t.atMost()) == nil {
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
