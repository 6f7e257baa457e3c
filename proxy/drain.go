package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrCut is returned by Shutdown if it had to cut off requests to end in time.
var ErrCut = errors.New("requests under way were cut off")

// cutTimeout is how long Shutdown waits for the answers and the log writes of requests that it has cut off.
const cutTimeout = 5 * time.Second

// Serve accepts connections from a TCP listener until Shutdown. A listener from listen.Open loses no connection then.
func (s *Server) Serve(l net.Listener) error { return s.ports.Serve(l) } // the error says "serve" already

// Drain sends "Connection: close" in every answer from now on. Requests are served as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Degraded reports whether the store cannot be read or takes no writes, as the last requests or a probe found it.
func (s *Server) Degraded() bool { return s.degraded.reads.Load() || s.degraded.writes.Load() }

// Shutdown stops accepting connections and waits for the requests under way and the log writes after them. Connections that the kernel has
// accepted, and requests that arrive on kept connections before these are closed, are still served. When ctx ends, requests still under way
// are cut off, which their clients can see, and the error is ErrCut. The log is written in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	drained := s.ports.Close(s.o.Limits.AcceptGrace)
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		if busy, _ := s.ports.Count(); busy > 0 {
			err = fmt.Errorf("shut down: %w: %d connections", ErrCut, busy)
		}
		s.cut()
		waitFor(drained, cutTimeout)
		s.ports.Abort()
		waitFor(drained, cutTimeout) // a handler that does not return by then is abandoned
	}
	done := s.after.close()
	waitFor(done, cutTimeout)
	s.cut()
	s.cancel()
	<-done // cancelling s.ctx ends the rest
	return err
}

// waitFor waits until done is closed, for at most timeout.
func waitFor(done <-chan struct{}, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// background is work that outlives its request. Shutdown waits for it.
type background struct {
	mu      sync.Mutex
	closed  bool
	work    sync.WaitGroup
	pending chan struct{} // holds an element per log write under way
}

// inBackground runs work in a goroutine of its own. Once the server is about to end, it runs the work before it returns.
func (s *Server) inBackground(work func()) {
	guarded := func() { s.o.guard(work) }
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

// close refuses further work, and returns a channel that is closed when the work under way has ended.
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

// reserve takes one of the places for background writes. If none is free, the write is counted as lost.
func (s *Server) reserve(op string) bool {
	select {
	case s.after.pending <- struct{}{}:
		return true
	default:
		s.o.Faults.Lost(op + "_queue_full")
		return false
	}
}

// write runs a write to the store in the background, in a reserved place.
func (s *Server) write(op string, work func(context.Context) error) {
	s.inBackground(func() {
		defer func() { <-s.after.pending }()
		if err := work(s.ctx); err != nil {
			s.degraded.writeFailed(op, err)
		}
	})
}
