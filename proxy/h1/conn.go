package h1

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"
)

// maxHead bounds a response's header, in bytes.
const maxHead = 1 << 20

// errHead ends a response whose header is too large.
var errHead = errors.New("response header too large")

// conn is one connection to an upstream. One exchange at a time uses it.
type conn struct {
	net.Conn
	wire  net.Conn // below TLS: closed, it ends everything at once
	addr  string
	raw   syscall.RawConn // nil: it can not be peeked at
	in    *bufio.Reader
	out   *bufio.Writer // gathers what is to be encrypted; nil: in the clear
	left  int           // bytes that a header may still take; negative: no bound
	since time.Time
}

func newConn(c net.Conn, addr string) *conn {
	out := &conn{Conn: c, wire: c, addr: addr, left: -1}
	if secured, ok := c.(*tls.Conn); ok {
		out.wire, out.out = secured.NetConn(), bufio.NewWriterSize(c, record)
	}
	if sc, ok := out.wire.(syscall.Conn); ok {
		out.raw, _ = sc.SyscallConn()
	}
	out.in = bufio.NewReaderSize(out, 16<<10)
	return out
}

// Read implements io.Reader, within the bound of the header while one is read.
func (c *conn) Read(p []byte) (int, error) {
	if c.left < 0 {
		return c.Conn.Read(p)
	}
	if c.left == 0 {
		return 0, errHead
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// alive reports whether a kept connection is still open: nothing may have come on it, not even its end.
func (c *conn) alive() bool {
	if c.raw == nil || c.in.Buffered() > 0 {
		return false
	}
	open := false
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN
	})
	return err == nil && open
}

// outcome is how a write ended.
type outcome struct{ err error }

// send writes a request. What goes in one write needs no second goroutine: sent is then nil. Otherwise it gets the
// outcome: an upstream may answer before it has read everything.
func (c *conn) send(head []byte, body [][]byte) (sent chan outcome, err error) {
	total := len(head)
	buffers := make(net.Buffers, 0, len(body)+1)
	buffers = append(buffers, head)
	for _, p := range body {
		total += len(p)
		buffers = append(buffers, p)
	}
	if total <= inline {
		return nil, c.write(buffers)
	}
	sent = make(chan outcome, 1)
	go func() { sent <- outcome{c.write(buffers)} }()
	return sent, nil
}

// record is how much goes into a TLS record at most (RFC 8446, section 5.1).
const record = 16 << 10

func (c *conn) write(buffers net.Buffers) error {
	if c.out == nil {
		_, err := buffers.WriteTo(c.Conn)
		return err
	}
	for _, b := range buffers {
		if _, err := c.out.Write(b); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// inline is how many bytes are written before anything is read: a socket's buffer takes that much, whether or not the
// other side reads.
const inline = 64 << 10
