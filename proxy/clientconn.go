package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// lingering is how long a connection is kept after its last answer, or after it was made, when the server is about to end:
// a client that was not told to close it may be writing its next request.
const lingering = time.Second

// clientConn is a connection that knows whether a request is under way on it.
type clientConn struct {
	*net.TCPConn
	of *doors

	mu    sync.Mutex
	since time.Time // nothing has come since the last answer, or at all; zero: a request is under way
	used  bool      // something has come
	asked time.Time // the read deadline that the server wants
	early bool      // one before it is set
}

// enter makes a new connection one of the doors'.
func (d *doors) enter(conn *net.TCPConn) *clientConn {
	c := &clientConn{TCPConn: conn, of: d, since: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[c] = struct{}{}
	return c
}

// follow is told by fasthttp when an answer is over and when the next request comes, which may have been read with the one
// before. The server sets a read deadline after either. It takes a new connection for an active one, too.
func follow(conn net.Conn, state fasthttp.ConnState) {
	c, ok := conn.(*clientConn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == fasthttp.StateIdle:
		c.since = time.Now()
	case state == fasthttp.StateActive && c.used:
		c.since = time.Time{}
	}
}

// Read implements net.Conn. A connection that was kept for nothing ends as if its client had closed it.
func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		c.speaks()
	} else if timedOut(err) && c.hurried() {
		return 0, io.EOF
	}
	return n, err
}

// speaks notes that a request has begun.
func (c *clientConn) speaks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.used = time.Time{}, true
	if c.early {
		c.early = false
		_ = c.TCPConn.SetReadDeadline(c.asked)
	}
}

// SetReadDeadline implements net.Conn.
func (c *clientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	return c.setDeadline()
}

// hurry has the connection end soon, unless a request is under way.
func (c *clientConn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.setDeadline()
}

// setDeadline sets the read deadline that the server wants, or an earlier one if the connection is to end. It is called
// under mu.
func (c *clientConn) setDeadline() error {
	t, end := c.asked, c.since.Add(lingering)
	c.early = !c.since.IsZero() && c.of.leaving.Load() && (t.IsZero() || end.Before(t))
	if c.early {
		t = end
	}
	return c.TCPConn.SetReadDeadline(t)
}

func (c *clientConn) hurried() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.early
}

func (c *clientConn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	err := c.TCPConn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.conns, c)
	c.of.check()
	return err
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
