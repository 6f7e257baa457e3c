package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrCut says that a server was shut down in time, but requests had to be cut off for it.
var ErrCut = errors.New("requests under way were cut off")

// cutting is how long requests that are cut off have to tell their clients, and log writes to end after them.
const cutting = 5 * time.Second

// Serve takes connections from a TCP listener until Shutdown. One that listen.Open made loses none of them then.
func (s *Server) Serve(l net.Listener) error { return s.ports.Serve(l) } //nolint:wrapcheck // it says "serve"

// Drain has every answer from now on tell its client to close the connection. Requests are served as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Degraded reports whether the store is away or takes no writes, as the last requests found it.
func (s *Server) Degraded() bool { return s.degraded.reading.Load() || s.degraded.writes.Load() }

// Shutdown stops taking connections, waits for requests under way and for what is to be written to the log after them.
// What has been begun is served: connections that the kernel had accepted, and requests that come on kept connections
// before these are closed. When ctx ends, requests still under way are cut off, visibly to their clients; the error is
// then ErrCut. The log is written in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	over := s.ports.Close()
	var err error
	select {
	case <-over:
	case <-ctx.Done():
		busy, _ := s.ports.Count()
		err = fmt.Errorf("shut down: %w: %d connections", ErrCut, busy)
		s.cut()
		s.await(over)
		s.ports.Abort()
		s.await(over) // a handler that does not return is left behind
	}
	done := s.after.close()
	s.await(done)
	s.cut()
	s.cancel()
	<-done // what is left ends with s.ctx
	return err
}

// await waits for what should be over soon.
func (s *Server) await(over <-chan struct{}) {
	late := time.NewTimer(cutting)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

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
