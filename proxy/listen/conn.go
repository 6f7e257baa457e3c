package listen

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTime is how long a connection is kept open after its last answer, or after it was accepted, once the ports are closing: a client that
// does not know that yet may be writing its next request.
const lingerTime = time.Second

// conn is a connection that is parked while no request is under way on it, without buffers or a grown stack. To park it, Read returns io.EOF to
// the HTTP server, Close leaves it open, and Ports.attend waits for the next request.
type conn struct {
	*net.TCPConn
	ports    *Ports
	received atomic.Int64 // bytes, of all requests
	parking  bool         // Read has returned io.EOF although the connection is open

	idleSince atomic.Pointer[time.Time] // the end of the last answer, or when it was accepted; nil: a request is under way

	mu       sync.Mutex
	deadline time.Time // for reads, as the HTTP server set it
}

// newConn registers an accepted connection.
func (p *Ports) newConn(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, ports: p}
	accepted := time.Now()
	c.idleSince.Store(&accepted)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	p.users.Add(1)
	if p.maxSilence > 0 {
		c.deadline = accepted.Add(p.maxSilence)
	}
	_ = c.applyDeadline()
	return c
}

// awaitRequest waits, with a small stack, until the first byte of a request arrives. It reports false if the connection ends before that, or
// its deadline passes.
func (c *conn) awaitRequest() bool {
	if gone, err := peek(c.TCPConn); gone || err != nil {
		return false
	}
	c.idleSince.Store(nil)
	return c.SetReadDeadline(time.Time{}) == nil
}

// idle reports whether no request is under way.
func (c *conn) idle() bool { return c.idleSince.Load() != nil }

// Read implements net.Conn. After an answer it returns io.EOF, as if the client had closed the connection.
func (c *conn) Read(p []byte) (int, error) {
	c.parking = c.idle()
	if c.parking {
		return 0, io.EOF
	}
	n, err := c.TCPConn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Received returns how many bytes have been read so far.
func (c *conn) Received() int64 { return c.received.Load() }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.applyDeadline()
}

// applyDeadline sets the read deadline that the HTTP server wants, or an earlier one if the ports are closing and the connection is idle.
func (c *conn) applyDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := c.deadline
	if since := c.idleSince.Load(); c.ports.closing.Load() && since != nil {
		end := since.Add(lingerTime)
		if deadline.IsZero() || end.Before(deadline) {
			deadline = end
		}
	}
	return c.TCPConn.SetReadDeadline(deadline)
}

// Close implements net.Conn. It leaves a connection open that is being parked.
func (c *conn) Close() error {
	if c.parking {
		return nil
	}
	return c.closeTCP()
}

// closeTCP closes the connection even if it is being parked.
func (c *conn) closeTCP() error {
	err := c.TCPConn.Close()
	c.ports.mu.Lock()
	defer c.ports.mu.Unlock()
	if _, open := c.ports.conns[c]; open {
		delete(c.ports.conns, c)
		c.ports.users.Done()
	}
	return err
}
