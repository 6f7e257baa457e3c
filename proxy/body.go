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

// body is a request body, charged to the budget until its last user releases it.
type body struct {
	bytes    []byte
	reader   *bodyReader
	charged  int64        // bytes that the budget counts for it
	users    atomic.Int32 // how many there are besides the first
	coding   []string     // the Content-Encoding of bytes
	original *body        // what the client sent, if that means the same to upstream. It is sent unless altered is set, and released with this body; nil: none
	altered  bool         // it no longer means what the client sent
}

// replace replaces the text of the body. Nothing may alias the old one any more.
func (b *body) replace(text []byte) {
	b.altered = b.altered || !bytes.Equal(text, b.bytes)
	b.bytes = text
}

// rephrased returns a body with another text that means the same to upstream. The new body replaces the caller as a user of b. If the budget has
// no room for both texts, the new text replaces that of b, and b is returned.
func (b *body) rephrased(text []byte) *body {
	n := int64(len(text))
	if bytes.Equal(text, b.bytes) || b.reader.budget.take(b.reader.client, n, b.charged) != nil {
		b.replace(text)
		return b
	}
	return &body{bytes: bytes.Clone(text), reader: b.reader, charged: n, original: b}
}

// Hold implements engine.Body: it adds a user.
func (b *body) Hold() { b.users.Add(1) }

// Release implements engine.Body: it removes a user. The last one frees the buffer.
func (b *body) Release() {
	if b.users.Add(-1) >= 0 {
		return
	}
	b.reader.budget.give(b.reader.client, b.charged)
	if b.original != nil {
		b.original.Release()
	}
	b.reader.pool.put(b.bytes)
	b.bytes = nil
}

// bodyReader reads request bodies into pooled buffers that are charged to a budget.
type bodyReader struct {
	pool    *bufferPool
	budget  *budget
	client  client        // who is charged for the bytes
	limit   int64         // of one body, in bytes
	setting string        // that holds the limit
	idle    time.Duration // longest pause between two reads
}

// bodyReader returns a reader for the request's client, with the tenant's limit if that is lower.
func (r *accepted) bodyReader() *bodyReader {
	br := r.server.reader
	if limit := int64(r.tenant.Limits.Body); limit > 0 && limit < br.limit {
		br.limit, br.setting = limit, "max_body in the tenant's limits, or in limits.tenant"
		if r.tenant.Anonymous {
			br.setting = "limits.tenant.max_body"
		}
	}
	trusted := r.trusted()
	br.client = client{tenant: r.tenant.Name, credential: r.credential, stranger: !trusted()}
	return &br
}

// readBody reads the request's body and then its header, and decodes the body if it is to be parsed.
func (r *request) readBody(ctx *fasthttp.RequestCtx) error {
	reader := r.bodyReader()
	stream := ctx.RequestBodyStream()
	declared := ctx.Request.Header.ContentLength()
	if int64(declared) > 3*reader.limit {
		return errTooLarge(reader.limit, reader.setting) // too much to read and drop
	}
	if stream == nil {
		declared = 0
	}
	var err error
	if r.body, err = reader.read(stream, ctx.Conn(), declared); err != nil {
		return err
	}
	r.accepted = r.received(&ctx.Request.Header)
	return r.decodeBody()
}

// read reads a whole body from r, whose connection is conn. declared is the body's length, negative if it is not known. The body has one
// user.
func (br *bodyReader) read(r io.Reader, conn net.Conn, declared int) (*body, error) {
	b := &body{reader: br}
	if declared == 0 {
		return b, nil
	}
	err := br.fill(b, r, conn, declared)
	if err == nil {
		return b, nil
	}
	b.Release()
	var timeout net.Error
	switch {
	case errors.As(err, new(apiError)): // refused while the client is still sending
		br.discard(r, conn)
		return nil, err
	case errors.Is(err, errClientGone):
		return nil, err
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, closing(408, "request_timeout",
			"The request body did not arrive in time. Send it without pauses, at 16 KiB a second or faster.")
	}
	return nil, closing(400, "incomplete_body", "The request body ended early or was malformed.")
}

// minRate is how many bytes a second a client must send. A body that trickles in would hold its buffer for hours.
const minRate = 16 << 10

// fill reads a body into a buffer that grows as it arrives. conn gets read deadlines; it is nil for a body that is decoded from memory.
// An apiError refuses the rest of the body; any other error says why it could not be read.
func (br *bodyReader) fill(b *body, r io.Reader, conn net.Conn, declared int) error {
	if int64(declared) > br.limit {
		return errTooLarge(br.limit, br.setting)
	}
	wire, _ := conn.(interface{ Received() int64 })
	var before int64
	if wire != nil {
		before = wire.Received()
	}
	deadline := time.Now().Add(br.idle)
	for {
		if len(b.bytes) == cap(b.bytes) {
			if err := br.grow(b, declared); err != nil {
				return err
			}
		}
		if conn != nil && conn.SetReadDeadline(deadline) != nil {
			return errClientGone
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		deadline = br.extend(deadline, n)
		switch {
		case int64(len(b.bytes)) > br.limit:
			return errTooLarge(br.limit, br.setting)
		case wire != nil && wire.Received()-before > maxFraming+16*int64(len(b.bytes)):
			return errors.New("more framing than body")
		case err == io.EOF && len(b.bytes) >= declared:
			return nil
		case err != nil:
			return err // read turns it into an answer
		}
	}
}

// maxFraming is how many bytes of framing, such as chunk sizes and their extensions, a body may have in addition to 16 times its length.
const maxFraming = 64 << 10

// extend moves a body's deadline after n bytes have arrived, by the time that they take at minRate. However much has arrived, the next
// pause may last no longer than idle.
func (br *bodyReader) extend(deadline time.Time, n int) time.Time {
	deadline = deadline.Add(time.Duration(n) * time.Second / minRate)
	if latest := time.Now().Add(br.idle); latest.Before(deadline) {
		return latest
	}
	return deadline
}

// grow moves a body into a larger buffer and charges the budget for the whole buffer. A declared length is allocated at once when a fifth of
// it has arrived, so that most of a large body is copied at most once. Without one the buffer doubles.
func (br *bodyReader) grow(b *body, declared int) error {
	had := cap(b.bytes)
	size := 4 * had
	switch {
	case had == 0:
		size = minBuffer
	case declared < 0:
		size = int(min(2*int64(had), br.limit+1))
	case declared <= 5*had:
		size = declared + 1 // more than it needs, or it would grow once more to read its end
	}
	size = room(size)
	more := min(int64(size), br.limit) - b.charged
	if err := br.budget.take(br.client, more, b.charged); err != nil {
		return err
	}
	b.charged += more
	old := b.bytes
	b.bytes = append(br.pool.get(size), old...)
	br.pool.put(old)
	return nil
}

// discard reads and drops the rest of a refused body, up to three times the limit: a client that is still sending would not see the answer.
func (br *bodyReader) discard(r io.Reader, conn net.Conn) {
	if conn.SetReadDeadline(time.Now().Add(br.idle)) != nil {
		return
	}
	buffer := br.pool.get(minBuffer)
	defer br.pool.put(buffer)
	for left := 3 * br.limit; left > 0; {
		n, err := r.Read(buffer[:cap(buffer)])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// Pooled buffers have sizes of powers of two from minBuffer to maxBuffer. Larger ones are allocated to measure and not pooled.
const (
	minBuffer = 16 << 10
	maxBuffer = 1 << 20
)

// bufferPool hands out byte buffers. Its index is the binary logarithm of their size.
type bufferPool [21]sync.Pool // of *[]byte

// room returns the capacity of a buffer for n bytes.
func room(n int) int {
	if n > maxBuffer {
		return n
	}
	return max(minBuffer, 1<<bits.Len(uint(n-1))) // n is positive
}

// get returns an empty buffer of a capacity that room returned.
func (p *bufferPool) get(size int) []byte {
	if size <= maxBuffer {
		if b, ok := p[bits.TrailingZeros(uint(size))].Get().(*[]byte); ok { // size is positive
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// put returns a buffer to the pool, unless get would not have made it or it is too large.
func (p *bufferPool) put(b []byte) {
	if size := cap(b); size <= maxBuffer && size == room(size) {
		p[bits.TrailingZeros(uint(size))].Put(&b) // size is positive
	}
}
