package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
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

	received  atomic.Int64 // bytes, of all requests
	mu        sync.Mutex
	since     time.Time // nothing has come since the last answer, or at all; zero: a request is under way
	wanted    time.Time // the read deadline that the HTTP server set
	shortened bool      // an earlier one is set
	served    bool      // the HTTP server has it
	parking   bool      // the HTTP server was told that it ended, though it is open
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
	c.since, c.served, c.shortened = time.Time{}, true, false
	return true
}

// park takes a connection back from the HTTP server, if it is to be parked.
func (c *conn) park() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.parking {
		return false
	}
	c.parking, c.served = false, false
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

// Read implements net.Conn. To the server, a connection that is to be parked ends as if its client had closed it.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.received.Add(int64(n))
	if n > 0 {
		c.requestBegan()
	} else if timedOut(err) && c.toPark() {
		return 0, io.EOF
	}
	return n, err
}

// Received is how many bytes have come so far.
func (c *conn) Received() int64 { return c.received.Load() }

// requestBegan notes that a request has begun. A server that wants deadlines sets the next one now.
func (c *conn) requestBegan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
	if c.shortened && c.wanted.IsZero() {
		_ = c.TCPConn.SetReadDeadline(c.wanted)
	}
	c.shortened = false
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	return c.setDeadline()
}

// endSoon has the connection end soon, unless a request is under way.
func (c *conn) endSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.setDeadline()
}

// setDeadline sets the read deadline that the server wants, or an earlier one if the connection is to be parked or to end. It
// is called under mu.
func (c *conn) setDeadline() error {
	t := c.wanted
	c.shortened = false
	if end, bounded := c.silenceLimit(); bounded && (t.IsZero() || end.Before(t)) {
		c.shortened, t = true, end
	}
	return c.TCPConn.SetReadDeadline(t)
}

// silenceLimit is until when a silent connection stays as it is. It is called under mu.
func (c *conn) silenceLimit() (end time.Time, bounded bool) {
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

// toPark reports whether the connection is to be taken from the HTTP server: it was silent for as long as grace.
func (c *conn) toPark() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parking = c.shortened
	return c.parking
}

func (c *conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// Close implements net.Conn, except for a connection that is to be parked.
func (c *conn) Close() error {
	c.mu.Lock()
	parking := c.parking
	c.mu.Unlock()
	if parking {
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
