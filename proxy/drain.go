package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// ErrCut says that a server was shut down in time, but requests had to be cut off for it.
var ErrCut = errors.New("requests under way were cut off")

// cutting is how long requests that are cut off have to tell their clients, and log writes to end after them.
const cutting = 5 * time.Second

// Serve takes connections from a listener for TCP until Shutdown. One that Listen made loses none of them then.
func (s *Server) Serve(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("serve: %T is no listener for TCP", l)
	}
	d, open := s.doors.add(tcp)
	if !open {
		_ = l.Close()
		return nil
	}
	defer s.doors.ended()
	for {
		c, err := d.next()
		switch {
		case err == nil:
			if wait := s.o.Limits.HeaderWait; wait > 0 {
				_ = c.SetReadDeadline(time.Now().Add(wait))
			}
			go s.attend(c) // until it is none of the doors' any more
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return nil
		default:
			return fmt.Errorf("serve: %w", err)
		}
	}
}

// attend waits for a connection's next request and has it served, with those that follow at once. Then it begins anew, in
// a goroutine whose stack is small again.
func (s *Server) attend(c *clientConn) {
	if !c.await() {
		_ = c.end()
		return
	}
	_ = s.http.ServeConn(c) // its errors are the client's
	if c.park() {
		go s.attend(c)
	}
}

// follow is told by fasthttp when an answer is over and when the next request comes.
func follow(conn net.Conn, state fasthttp.ConnState) {
	c, ok := conn.(*clientConn)
	switch {
	case ok && state == fasthttp.StateIdle:
		c.idle()
	case ok && state == fasthttp.StateActive:
		c.active()
	}
}

// Drain has every answer from now on tell its client to close the connection. Requests are served as before.
func (s *Server) Drain() { s.draining.Store(true) }

// farewell ends a client's connection with this answer when the server is about to end.
func (s *Server) farewell(ctx *fasthttp.RequestCtx) {
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
}

// Degraded reports whether the store is away or takes no writes, as the last requests found it.
func (s *Server) Degraded() bool { return s.degraded.reading.Load() || s.degraded.writes.Load() }

// Shutdown stops taking connections, waits for requests under way and for what is to be written to the log after them.
// What has been begun is served: connections that the kernel had accepted, and requests that come on kept connections
// before these are closed. When ctx ends, requests still under way are cut off, visibly to their clients; the error is
// then ErrCut. The log is written in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	over := s.doors.shut()
	var err error
	select {
	case <-over:
	case <-ctx.Done():
		err = fmt.Errorf("shut down: %w: %d connections", ErrCut, s.doors.busy())
		s.cut()
		s.await(over)
		s.doors.slam()
		s.await(over) // a handler that does not return is left behind
	}
	done := s.after.close()
	s.await(done)
	s.cut()
	s.cancel()
	<-done // what is left ends with s.ctx
	s.lines.close()
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
