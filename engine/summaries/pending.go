package summaries

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Task says for which history a condensation is made.
type Task struct {
	Thread session.ThreadID
	Head   session.Hash // of the history
	Owner  string       // tenant or anonymous client, whose tasks are limited together
	Ahead  bool         // prepares a summary that is not due yet: no request waits for it
	Quick  bool         // does not wait for a model
}

// Work is what a task does. All but Make may be nil.
type Work[R any] struct {
	// Make makes and commits condensations, and returns the result. Its context outlives the request.
	Make func(ctx context.Context, p *Pending[R]) R
	// Panicked returns the result of a task whose Make panicked with a value. so is what it had committed before.
	Panicked func(so R, value any) R
	// Late receives the result of a task whose request had gone on without it, and what that request had taken along.
	Late func(taken, result R)
	// Done is called last.
	Done func()
}

// Pending is a running task. The service owns it: it goes on even if the request that started it gives up, and a retry may wait for it as well.
type Pending[R any] struct {
	Task
	Begun time.Time
	next  func(run bool) // starts, or drops, the work that waits for the end of a task that is ahead; guarded by Service.mu. nil: none
	done  chan struct{}  // closed at the end

	mu        mutex // held during a commit, so that a request goes on either without it or with all of it
	left      bool  // the request that started it has gone on without it
	finished  bool
	committed R // the result as of the last commit before the request left; the zero value: nothing was committed
	result    R // once finished
}

// Start starts a task. The error is ErrCrowded.
func (s *Service[R]) Start(ctx context.Context, t Task, work Work[R]) (*Pending[R], error) {
	p := &Pending[R]{Task: t, Begun: s.now(), left: t.Ahead, done: make(chan struct{}), mu: make(mutex, 1)}
	if err := s.add(p); err != nil {
		return nil, err
	}
	outliving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.ctx, cancel)
	go func() {
		// In reverse order: the task finishes, and is removed; Done is called, and Close waits for this task no longer.
		defer s.work.Done()
		if work.Done != nil {
			defer work.Done()
		}
		defer s.remove(p)
		defer cancel()
		defer stop()
		result, value := p.run(outliving, work.Make)
		if p.finish(result, value, work.Panicked) && work.Late != nil {
			defer func() { _ = recover() }() // a panic in the callback must not end the process
			work.Late(p.committed, p.result)
		}
	}()
	return p, nil
}

// run returns the result of a task's work, and the value that it panicked with, nil if it did not.
func (p *Pending[R]) run(ctx context.Context, do func(context.Context, *Pending[R]) R) (result R, value any) {
	defer func() { value = recover() }()
	return do(ctx, p), nil
}

// finish sets the result, and reports whether the request has gone on without it.
func (p *Pending[R]) finish(result R, value any, panicked func(R, any) R) (left bool) {
	p.mu.lock()
	defer p.mu.unlock()
	p.result = result
	if value != nil && panicked != nil {
		p.result = panicked(p.committed, value)
	}
	p.finished = true
	return p.left
}

// Wait waits for the end of the task, and reports whether it came before the deadline and the end of ctx.
func (p *Pending[R]) Wait(ctx context.Context, deadline time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Take is called by the request that started the task. It returns the result, if the task has finished. Otherwise it returns what was committed
// so far, and the request has left.
func (p *Pending[R]) Take() (r R, finished bool) {
	p.mu.lock()
	defer p.mu.unlock()
	if p.finished {
		return p.result, true
	}
	p.left = true
	return p.committed, false
}

// Commit runs do, which commits a condensation and returns the result so far, and whether anything was committed. The request cannot leave
// meanwhile; left tells do whether it has.
func (p *Pending[R]) Commit(do func(left bool) (so R, changed bool)) {
	p.mu.lock()
	defer p.mu.unlock()
	if so, changed := do(p.left); changed && !p.left {
		p.committed = so
	}
}

// mutex is a mutex on which a goroutine is durably blocked, as testing/synctest needs it.
type mutex chan struct{}

func (m mutex) lock()   { m <- struct{}{} }
func (m mutex) unlock() { <-m }
