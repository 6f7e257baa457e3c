package listen

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingering is how long a connection is kept after its last answer, or after it was made, when the server is about to
// end: a client that was not told to close it may be writing its next request.
const lingering = time.Second

// conn is a connection that knows whether a request is under way on it. While none is, it is parked, without buffers and a grown stack:
// Read tells the HTTP server that it has ended, Close leaves it open, and attend waits for the next request.
type conn struct {
	*net.TCPConn
	of       *Ports
	received atomic.Int64 // bytes, of all requests
	parking  bool         // the HTTP server was told that it ended, though it is open

	mu     sync.Mutex
	since  time.Time // nothing has come since the last answer, or at all; zero: a request is under way
	wanted time.Time // the read deadline that the HTTP server set
}

// enter registers a new connection.
func (p *Ports) enter(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, of: p, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	p.users.Add(1)
	if p.silence > 0 {
		c.wanted = c.since.Add(p.silence)
	}
	_ = c.setEnd()
	return c
}

// await waits, at the cost of a small stack, until a request begins. It reports false when the connection ends before, or
// is silent for too long.
func (c *conn) await() bool {
	if gone, err := peek(c.TCPConn); gone || err != nil {
		return false
	}
	c.setSilent(time.Time{})
	return c.SetReadDeadline(time.Time{}) == nil
}

// setSilent notes since when nothing has come, or that something has.
func (c *conn) setSilent(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = since
}

// silent reports whether no request is under way.
func (c *conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// Read implements net.Conn. To the server, a connection ends after an answer as if its client had closed it.
func (c *conn) Read(p []byte) (int, error) {
	if c.parking = c.silent(); c.parking {
		return 0, io.EOF
	}
	n, err := c.TCPConn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Received is how many bytes have come so far.
func (c *conn) Received() int64 { return c.received.Load() }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.wanted = t
	c.mu.Unlock()
	return c.setEnd()
}

// setEnd sets the read deadline that the server wants, or an earlier one for a silent connection that is to end.
func (c *conn) setEnd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.since.Add(lingering); c.of.leaving.Load() && !c.since.IsZero() && (c.wanted.IsZero() || end.Before(c.wanted)) {
		return c.TCPConn.SetReadDeadline(end)
	}
	return c.TCPConn.SetReadDeadline(c.wanted)
}

// Close implements net.Conn, except for a connection that is to be parked.
func (c *conn) Close() error {
	if c.parking {
		return nil
	}
	return c.end()
}

// end closes the connection for good.
func (c *conn) end() error {
	err := c.TCPConn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if _, open := c.of.conns[c]; open {
		delete(c.of.conns, c)
		c.of.users.Done()
	}
	return err
}
