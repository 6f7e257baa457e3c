package proxy

import (
	"context"
	"sync"
)

// background is the work that goes on next to requests and is waited for at the end.
type background struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// inBackground does work next to a request, or in line with it where the server is about to end.
func (s *Server) inBackground(work func()) {
	guarded := func() { s.o.survives(work) }
	s.after.mu.Lock()
	open := !s.after.closed
	if open {
		s.after.work.Go(guarded)
	}
	s.after.mu.Unlock()
	if !open {
		guarded()
	}
}

// close takes no more work, and returns a channel that is closed when all there is has been done.
func (b *background) close() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.work.Wait()
	}()
	return done
}

// reserve takes one of the places for writes in the background. If there is none, what was to be written is lost.
func (s *Server) reserve(op string) bool {
	select {
	case s.pending <- struct{}{}:
		return true
	default:
		s.o.Faults.Lost(op + "_queue_full")
		return false
	}
}

// write writes to the store in the background, in a place that was reserved.
func (s *Server) write(op string, work func(context.Context) error) {
	s.inBackground(func() {
		defer func() { <-s.pending }()
		if err := work(s.ctx); err != nil {
			s.degraded.note(op, err)
		}
	})
}
