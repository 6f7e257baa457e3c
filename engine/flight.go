package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrDeadline is why a request went on without a condensation: it took longer than a request waits.
var ErrDeadline = errors.New("the condensation was not ready in time; it goes on for the next request")

// errCrowded is why a condensation did not begin.
var errCrowded = errors.New("too many condensations are under way")

// crowd is how many condensations may be under way at once. Those whose clients have left count, so that clients who leave
// cannot pile them up.
const crowd = 1024

// flight is a condensation under way. It belongs to the engine: it goes on although the request that began it gives up, holds
// that request's body meanwhile, and is there for a retry to wait for.
type flight struct {
	head session.Hash  // of the history that is condensed
	done chan struct{} // closed at its end

	mu        sync.Mutex
	abandoned bool // the request that began it has gone on without it
	landed    bool // it has come to its end
}

// flights are those under way, by thread.
type flights struct {
	mu     sync.Mutex
	of     map[session.ThreadID]*flight // the last one of each
	count  int                          // of all
	closed bool
	work   sync.WaitGroup
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelFunc
}

func newFlights() *flights {
	f := &flights{of: map[session.ThreadID]*flight{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close waits for the condensations under way until ctx ends, and cuts them off then.
func (e *Engine) Close(ctx context.Context) error {
	f := e.flights
	f.mu.Lock()
	f.closed = true
	idle := f.count == 0
	f.mu.Unlock()
	if idle {
		f.cancel()
		return nil
	}
	over := make(chan struct{})
	go func() {
		f.work.Wait()
		close(over)
	}()
	defer f.cancel()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	f.cancel()
	<-over
	return fmt.Errorf("close engine: %w", ctx.Err())
}

// begin registers a flight for a thread. Of several at once, the last one is found by a retry.
func (f *flights) begin(thread session.ThreadID, head session.Hash) (*flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.count >= crowd {
		return nil, errCrowded
	}
	flight := &flight{head: head, done: make(chan struct{})}
	f.of[thread] = flight
	f.count++
	f.work.Add(1)
	return flight, nil
}

func (f *flights) end(thread session.ThreadID, flight *flight) {
	f.mu.Lock()
	f.count--
	if f.of[thread] == flight {
		delete(f.of, thread)
	}
	f.mu.Unlock()
	close(flight.done)
	f.work.Done()
}

// under gives the flight of a thread, nil if there is none.
func (f *flights) under(thread session.ThreadID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[thread]
}

// fly has work done on a copy of the turn, by the engine. If it is done before the deadline, the turn becomes the copy;
// otherwise it stays as it was and the work goes on. The context that the work is given outlives the request.
func (t *Turn) fly(ctx context.Context, reason session.Reason, work func(ctx context.Context, c *Turn, report *Report)) Report {
	thread, report := t.place.Thread.ID, &Report{}
	f, err := t.engine.flights.begin(thread, t.history.Head())
	if err != nil {
		t.failed(report, Attempt{Reason: reason, Err: err})
		return *report
	}
	copied := *t
	copied.made = slices.Clone(t.made)
	t.in.Body.Hold()
	outliving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(t.engine.flights.ctx, cancel)
	go func() {
		defer t.engine.flights.end(thread, f)
		defer cancel()
		defer stop()
		defer t.in.Body.Release()
		defer func() { f.land(t.in.Late, *report) }()
		defer func() {
			if v := recover(); v != nil {
				report.Panic = v
				copied.failed(report, Attempt{Reason: reason, Err: fmt.Errorf("condense: panic: %v", v)})
			}
		}()
		work(outliving, &copied, report)
	}()
	if !f.await(ctx, t.deadline()) && f.abandon() {
		return Report{Attempts: []Attempt{{Thread: thread, Reason: reason, Err: ErrDeadline}}}
	}
	*t = copied
	return *report
}

// await waits for a flight's end, and reports whether that came before the deadline and the request's own end.
func (f *flight) await(ctx context.Context, deadline time.Duration) bool {
	late := time.NewTimer(deadline)
	defer late.Stop()
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
	case <-late.C:
	}
	return false
}

// abandon goes on without a flight. It reports false if the flight has landed meanwhile.
func (f *flight) abandon() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = !f.landed
	return f.abandoned
}

// land ends a flight's work. What came of one that was abandoned is told here, since its request is not told any more.
func (f *flight) land(tell func(Report), report Report) {
	f.mu.Lock()
	f.landed = true
	abandoned := f.abandoned
	f.mu.Unlock()
	if abandoned && tell != nil {
		tell(report)
	}
}

// join waits for a condensation that an earlier try of the same request began, and shows what came of it. It reports whether
// there was one.
func (t *Turn) join(ctx context.Context) bool {
	f := t.engine.flights.under(t.place.Thread.ID)
	if f == nil || f.head != t.history.Head() {
		return false
	}
	if f.await(ctx, t.deadline()) {
		_, _ = t.overtaken(ctx) // what cannot be read is not shown
	}
	return true
}

// DefaultDeadline is how long a request waits for a condensation where its tenant's configuration does not say.
const DefaultDeadline = 20 * time.Second

// deadline is how long the request waits for a condensation.
func (t *Turn) deadline() time.Duration {
	if d := t.in.Tenant.Deadline; d > 0 {
		return d
	}
	return DefaultDeadline
}

// patience is how long one condensation may take. One that the request cannot go without has to leave time for the way without
// a model, and to write it.
func (t *Turn) patience(need condense.Need) time.Duration {
	if need.Hard {
		return min(t.deadline()*9/10, t.engine.o.Limits.Condense)
	}
	return t.engine.o.Limits.Condense
}
