package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// lingering is how long a connection is kept after its last answer, or after it was made, when the server is about to
	// end: a client that was not told to close it may be writing its next request.
	lingering = time.Second
	// grace is how long a connection keeps its buffers after an answer: a client in a loop finds them in place.
	grace = 100 * time.Millisecond
)

// conn is a connection that knows whether a request is under way on it. While none is, it has no buffers and no
// grown stack: Read tells the HTTP server that it has ended, Close leaves it open, and attend waits for the next request.
type conn struct {
	*net.TCPConn
	of *Ports

	mu     sync.Mutex
	since  time.Time // nothing has come since the last answer, or at all; zero: a request is under way
	asked  time.Time // the read deadline that the server wants
	early  bool      // one before it is set
	served bool      // the HTTP server has it
	rests  bool      // that was told of its end, which is none
}

// enter registers a new connection.
func (p *Ports) enter(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, of: p, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	return c
}

// await waits, at the cost of a small stack, until a request begins. It reports false when the connection ends before, or
// is silent for too long.
func (c *conn) await() bool {
	c.of.parked.Add(1)
	defer c.of.parked.Add(-1)
	raw, ok := rawConn(c.TCPConn)
	if !ok {
		return false
	}
	if gone, err := peek(raw); gone || err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.served, c.early = time.Time{}, true, false
	return true
}

// park takes a connection back from the HTTP server, if it rests.
func (c *conn) park() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rests {
		return false
	}
	c.rests, c.served = false, false
	_ = c.setDeadline()
	return true
}

// active notes that a request is about to be read, which may have come with the one before.
func (c *conn) active() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
}

// idle notes that an answer is over. The server sets a read deadline next.
func (c *conn) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
}

// Read implements net.Conn. To the server, a connection that is to rest ends as if its client had closed it.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		c.speaks()
	} else if timedOut(err) && c.rest() {
		return 0, io.EOF
	}
	return n, err
}

// speaks notes that a request has begun. A server that wants deadlines sets the next one now.
func (c *conn) speaks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
	if c.early && c.asked.IsZero() {
		_ = c.TCPConn.SetReadDeadline(c.asked)
	}
	c.early = false
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	return c.setDeadline()
}

// hurry has the connection end soon, unless a request is under way.
func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.setDeadline()
}

// setDeadline sets the read deadline that the server wants, or an earlier one if the connection is to rest or to end. It
// is called under mu.
func (c *conn) setDeadline() error {
	t := c.asked
	c.early = false
	if end, bounded := c.patience(); bounded && (t.IsZero() || end.Before(t)) {
		c.early, t = true, end
	}
	return c.TCPConn.SetReadDeadline(t)
}

// patience is until when a silent connection stays as it is. It is called under mu.
func (c *conn) patience() (end time.Time, bounded bool) {
	switch {
	case c.since.IsZero():
		return end, false
	case c.served:
		return c.since.Add(grace), true
	case c.of.leaving.Load():
		return c.since.Add(lingering), true
	}
	return end, false
}

// rest reports whether the server is to let go of the connection: it was silent for as long as its grace.
func (c *conn) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rests = c.early
	return c.rests
}

func (c *conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// Close implements net.Conn, but for a connection that rests.
func (c *conn) Close() error {
	c.mu.Lock()
	rests := c.rests
	c.mu.Unlock()
	if rests {
		return nil
	}
	return c.end()
}

// end closes the connection for good.
func (c *conn) end() error {
	err := c.TCPConn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.conns, c)
	c.of.check()
	return err
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
