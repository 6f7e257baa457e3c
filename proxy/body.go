package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// body is a request body, held against the budget until every user has released it.
type body struct {
	bytes   []byte
	of      *bodyReader
	held    int64 // of the budget
	users   atomic.Int32
	packed  *body    // as it came, where it was encoded
	coding  []string // how: the header's Content-Encoding
	altered bool     // it is not what the client sent
}

// Bytes implements engine.Body.
func (b *body) Bytes() []byte { return b.bytes }

// replace puts another text in the place of what the client sent. Nothing may alias that any more.
func (b *body) replace(text []byte) {
	b.altered = b.altered || len(text) != len(b.bytes) || !bytes.Equal(text, b.bytes)
	b.bytes = text
}

// Hold adds a user.
func (b *body) Hold() { b.users.Add(1) }

// Release takes a user away; the last one gives the buffer back.
func (b *body) Release() {
	if b.users.Add(-1) > 0 {
		return
	}
	b.of.budget.give(b.of.client, b.held)
	if b.packed != nil {
		b.packed.Release()
	}
	b.of.pool.put(b.bytes)
	b.bytes = nil
}

// bodyReader reads request bodies.
type bodyReader struct {
	pool   *bufferPool
	budget *budget
	client client        // whose bodies it reads
	limit  int64         // bytes of one body
	idle   time.Duration // longest wait for the next bytes
}

// reader reads the request's body: its tenant may send less than others.
func (r *request) reader() *bodyReader {
	br := r.server.reader
	if most := int64(r.tenant.Limits.Body); most > 0 {
		br.limit = min(br.limit, most)
	}
	br.client = r.client()
	return &br
}

func (r *request) readBody(ctx *fasthttp.RequestCtx) (err error) {
	reader, stream, declared := r.reader(), ctx.RequestBodyStream(), ctx.Request.Header.ContentLength()
	if int64(declared) > 3*reader.limit {
		return errTooLarge(reader.limit) // not worth reading to its end
	}
	if stream == nil {
		declared = 0
	}
	r.body, err = reader.read(stream, ctx.Conn(), declared)
	return err
}

// read takes a whole body from r, which reads from conn. It has the declared length; that is negative where there is none.
// The body has one user.
func (br *bodyReader) read(r io.Reader, conn net.Conn, declared int) (*body, error) {
	b := br.newBody()
	if declared == 0 {
		return b, nil
	}
	err := br.fill(b, r, conn, declared)
	if err == nil {
		return b, nil
	}
	b.Release()
	if errors.As(err, new(apiError)) { // the client goes on sending
		br.discard(r, conn)
		return nil, err
	}
	return nil, bodyError(err)
}

// newBody is an empty body with one user.
func (br *bodyReader) newBody() *body {
	b := &body{of: br}
	b.Hold()
	return b
}

// slowest is how many bytes a second a client must send, once it had time to begin: one that trickles would hold for hours
// what its body was given room for.
const slowest = 16 << 10

// fill reads the body, into buffers that grow as it comes, from a connection if it has one. An error of the API refuses what is still to
// come; others say why it does not.
func (br *bodyReader) fill(b *body, r io.Reader, conn net.Conn, declared int) error {
	if int64(declared) > br.limit {
		return errTooLarge(br.limit)
	}
	wire, _ := conn.(interface{ Received() int64 })
	var before int64
	if wire != nil {
		before = wire.Received()
	}
	for due := time.Now().Add(br.idle); ; {
		if len(b.bytes) == cap(b.bytes) {
			if err := br.grow(b, declared); err != nil {
				return err
			}
		}
		if conn != nil && conn.SetReadDeadline(due) != nil {
			return errClientGone
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		due = br.extend(due, n)
		switch {
		case int64(len(b.bytes)) > br.limit:
			return errTooLarge(br.limit)
		case wire != nil && wire.Received()-before > mostFraming+16*int64(len(b.bytes)):
			return errors.New("more framing than body")
		case err == io.EOF && len(b.bytes) >= declared:
			return nil
		case err != nil:
			return err //nolint:wrapcheck // read names it
		}
	}
}

// mostFraming is how many bytes may come around those of a body, more than in its proportion: sizes of chunks, their extensions.
const mostFraming = 64 << 10

// extend is until when a body must go on after n more bytes came of it: each gives it the time that the slowest client takes for it,
// but however much came, nothing earns a longer pause than idle.
func (br *bodyReader) extend(due time.Time, n int) time.Time {
	due = due.Add(time.Duration(n) * time.Second / slowest)
	if pause := time.Now().Add(br.idle); pause.Before(due) {
		return pause
	}
	return due
}

// grow moves a body into a larger buffer. What it is charged for is the buffer, not what is in it. A declared length is believed for
// up to five times what has come, so that most of a large body is copied once at most; without one, room doubles.
func (br *bodyReader) grow(b *body, declared int) error {
	had := cap(b.bytes)
	size := 4 * had
	switch {
	case had == 0:
		size = smallestBuffer
	case declared < 0:
		size = int(min(2*int64(had), br.limit+1))
	case declared <= 5*had:
		size = declared
	}
	size = room(size)
	more := min(int64(size), br.limit) - b.held
	if err := br.budget.take(br.client, more, b.held); err != nil {
		return err
	}
	b.held += more
	old := b.bytes
	b.bytes = append(br.pool.get(size), old...)
	br.pool.put(old)
	return nil
}

// discard reads what is left of a body that is refused, within reason: a client that is still sending would not see the
// answer.
func (br *bodyReader) discard(r io.Reader, conn net.Conn) {
	if conn.SetReadDeadline(time.Now().Add(br.idle)) != nil {
		return
	}
	buffer := br.pool.get(smallestBuffer)
	defer br.pool.put(buffer)
	for left := 3 * br.limit; left > 0; {
		n, err := r.Read(buffer[:cap(buffer)])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

func bodyError(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, errClientGone):
		return err
	case errors.As(err, &timeout) && timeout.Timeout():
		return apiError{
			Status: 408, Type: typeInvalid, Code: "request_timeout", Close: true,
			Message: "The request body did not arrive in time. Send it without pauses, and at 16 KB a second at least.",
		}
	}
	return apiError{
		Status: 400, Type: typeInvalid, Code: "incomplete_body", Close: true,
		Message: "The request body ended early or was malformed.",
	}
}

// Buffers come in powers of two from 16 KiB to 1 MiB, and are used again. Larger ones are made to measure.
const (
	smallestBuffer = 16 << 10
	largestBuffer  = 1 << 20
)

// bufferPool hands out byte buffers, by the logarithm of their size.
type bufferPool [21]sync.Pool // of *[]byte

// room is what a buffer for n bytes has.
func room(n int) int {
	if n > largestBuffer {
		return n
	}
	return max(smallestBuffer, 1<<bits.Len(uint(n-1))) //nolint:gosec // n is positive
}

// get gives an empty buffer with room for size bytes, which is the room of one.
func (p *bufferPool) get(size int) []byte {
	if size <= largestBuffer {
		if b, ok := p[bits.TrailingZeros(uint(size))].Get().(*[]byte); ok { //nolint:gosec // size is positive
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// put takes back what get gave.
func (p *bufferPool) put(b []byte) {
	if size := cap(b); size <= largestBuffer && size == room(size) {
		p[bits.TrailingZeros(uint(size))].Put(&b) //nolint:gosec // size is positive
	}
}
