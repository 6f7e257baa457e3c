// Package summaries runs the condensations of an engine. Each runs in a goroutine of its own, which outlives the request that asked for it. Its
// work commits what it makes to the thread's log, from which every later request takes it. A request that may wait waits on what is Pending, until
// its deadline, and takes the result, or what was committed by then.
package summaries

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrCrowded is returned for a task that does not start because too many are running.
var ErrCrowded = errors.New("too many condensations are running")

// Limits on concurrent tasks, in total and for each owner. Those whose clients have left count, too: a client cannot pile them up by leaving.
const (
	maxTasks         = 1024
	maxTasksPerOwner = 64
)

// threadsKept is how many threads the service remembers something of.
const threadsKept = 4096

// Service runs tasks, of which each has a result of type R. It may be used concurrently. Call Close when done.
type Service[R any] struct {
	now      func() time.Time
	mu       sync.Mutex
	byThread map[session.ThreadID]*Pending[R] // the last one started for each
	ahead    map[session.ThreadID]*Pending[R] // the one that prepares a summary
	count    int                              // of all
	perOwner map[string]int
	closed   bool
	work     sync.WaitGroup
	cpus     chan struct{}   // semaphore for Compute
	ctx      context.Context // ends when the service is closed
	cancel   context.CancelFunc

	logging lru.Cache[session.ThreadID, mutex]                  // held while a condensation of the thread is logged, so that none is logged twice
	ready   lru.Cache[session.ThreadID, session.CondensationID] // the condensation on top of which a summary was prepared

	pausedUntil atomic.Int64 // in nanoseconds of Unix time; 0: models may be called
}

// New returns a service without tasks.
func New[R any](now func() time.Time) *Service[R] {
	s := &Service[R]{
		now: now, byThread: map[session.ThreadID]*Pending[R]{}, ahead: map[session.ThreadID]*Pending[R]{}, perOwner: map[string]int{},
		cpus:    make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
		logging: lru.New[session.ThreadID, mutex](threadsKept),
		ready:   lru.New[session.ThreadID, session.CondensationID](threadsKept),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	return s
}

// Close waits for running tasks until ctx ends, and then cancels them.
func (s *Service[R]) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	idle := s.count == 0
	s.mu.Unlock()
	defer s.cancel()
	stop := context.AfterFunc(ctx, s.cancel)
	s.work.Wait()
	if cancelled := !stop(); cancelled && !idle {
		return fmt.Errorf("close summaries: %w", ctx.Err())
	}
	return nil
}

// Compute runs CPU-bound work, on at most half of the processors at a time. It fails if ctx ends before run can start.
func (s *Service[R]) Compute(ctx context.Context, run func()) error {
	select {
	case s.cpus <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
	defer func() { <-s.cpus }()
	run()
	return nil
}

// Find returns the task that was started last for a thread and still runs, nil if there is none.
func (s *Service[R]) Find(thread session.ThreadID) *Pending[R] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byThread[thread]
}

// Prepared returns the condensation on top of which a summary was prepared for a thread, as far as this process knows.
func (s *Service[R]) Prepared(thread session.ThreadID) (base session.CondensationID, known bool) {
	return s.ready.Get(thread)
}

// SetPrepared remembers that a summary was prepared on top of a condensation, which may be the zero id.
func (s *Service[R]) SetPrepared(thread session.ThreadID, base session.CondensationID) {
	s.ready.Add(thread, base)
}

// add registers a task.
func (s *Service[R]) add(p *Pending[R]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.count >= maxTasks || s.perOwner[p.Owner] >= maxTasksPerOwner {
		return ErrCrowded
	}
	s.byThread[p.Thread] = p
	if p.Ahead && s.ahead[p.Thread] == nil {
		s.ahead[p.Thread] = p
	}
	s.count++
	s.perOwner[p.Owner]++
	s.work.Add(1)
	return nil
}

// remove unregisters a task and wakes those who wait for it.
func (s *Service[R]) remove(p *Pending[R]) {
	s.mu.Lock()
	s.count--
	s.perOwner[p.Owner]--
	if s.perOwner[p.Owner] == 0 {
		delete(s.perOwner, p.Owner)
	}
	if s.byThread[p.Thread] == p {
		delete(s.byThread, p.Thread)
	}
	if s.ahead[p.Thread] == p {
		delete(s.ahead, p.Thread)
	}
	s.mu.Unlock()
	close(p.done)
	if p.next != nil { // After no longer finds this task
		p.next(true)
	}
}

// After has next called at the end of the task that prepares a summary for a thread, in place of what waited for that before, which is called
// with false. It reports false if there is no such task.
func (s *Service[R]) After(thread session.ThreadID, next func(run bool)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := s.ahead[thread]
	if running == nil {
		return false
	}
	if running.next != nil {
		running.next(false)
	}
	running.next = next
	return true
}
