package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// body is a request body, held against the budget until every user has released it.
type body struct {
	bytes   []byte
	pool    *bufferPool
	account *account
	held    int64
	users   atomic.Int32
	packed  packed // as it came, where it was encoded
	altered bool   // it is not what the client sent
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
	b.account.give(b.held)
	b.account.close()
	if b.packed.body != nil {
		b.packed.Release()
	}
	b.pool.put(b.bytes)
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

// read takes a whole body from r, which reads from conn. It has the declared length; that is negative where there is none.
// The body has one user.
func (br *bodyReader) read(r io.Reader, conn net.Conn, declared int) (*body, error) {
	b := br.newBody()
	if declared == 0 {
		return b, nil
	}
	if err := br.fill(b, r, conn, declared); err != nil {
		b.Release()
		if errors.As(err, new(*unread)) {
			br.discard(r, conn)
		}
		return nil, err
	}
	return b, nil
}

// newBody is an empty body with one user.
func (br *bodyReader) newBody() *body {
	b := &body{pool: br.pool, account: br.budget.open(br.client)}
	b.Hold()
	return b
}

// unread is an error that leaves the client sending.
type unread struct{ error }

func (e *unread) Unwrap() error { return e.error }

// slowest is how many bytes a second a client must send, once it had time to begin: one that trickles would hold for hours
// what its body was given room for.
const slowest = 16 << 10

// timed is what a body may be too slow on.
type timed interface{ SetReadDeadline(t time.Time) error }

// fill reads the body into buffers that grow as it comes.
func (br *bodyReader) fill(b *body, r io.Reader, conn timed, declared int) error {
	if int64(declared) > br.limit {
		return &unread{errTooLarge(br.limit)}
	}
	wire, _ := conn.(interface{ Received() int64 })
	var before int64
	if wire != nil {
		before = wire.Received()
	}
	for due := time.Now().Add(br.idle); ; {
		if len(b.bytes) == cap(b.bytes) {
			if err := br.grow(b, br.next(cap(b.bytes), declared)); err != nil {
				return &unread{err}
			}
		}
		if err := conn.SetReadDeadline(due); err != nil {
			return errClientGone
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		due = br.extend(due, n)
		switch {
		case int64(len(b.bytes)) > br.limit:
			return &unread{errTooLarge(br.limit)}
		case wire != nil && wire.Received()-before > mostFraming+16*int64(len(b.bytes)):
			return bodyError(errFraming)
		case err == io.EOF && len(b.bytes) >= declared:
			return nil
		case err != nil:
			return bodyError(err)
		}
	}
}

// mostFraming is how many bytes may come around those of a body, more than in its proportion: sizes of chunks, their extensions.
const mostFraming = 64 << 10

var errFraming = errors.New("more framing than body")

// extend is until when a body must go on after n more bytes came of it: each gives it the time that the slowest client takes for it,
// but however much came, nothing earns a longer pause than idle.
func (br *bodyReader) extend(due time.Time, n int) time.Time {
	due = due.Add(time.Duration(n) * time.Second / slowest)
	if pause := time.Now().Add(br.idle); pause.Before(due) {
		return pause
	}
	return due
}

// next is how many bytes a body gets room for that has filled what it had. A declared length is believed for up to five
// times what has come, so that most of a large body is copied once at most; without one, room doubles.
func (br *bodyReader) next(had, declared int) int {
	switch {
	case had == 0:
		return smallestBuffer
	case declared < 0:
		return int(min(2*int64(had), br.limit+1))
	case declared <= 5*had:
		return declared
	}
	return 4 * had
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

// grow moves a body into a buffer for size bytes. What it is charged for is the buffer, not what is in it.
func (br *bodyReader) grow(b *body, size int) error {
	room := br.pool.round(size)
	more := min(int64(room), br.limit) - b.held
	if err := b.account.take(more, b.held); err != nil {
		return err
	}
	b.held += more
	old := b.bytes
	b.bytes = append(br.pool.get(room), old...)
	br.pool.put(old)
	return nil
}

var errClientGone = errors.New("client gone")

func bodyError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &apiError{
			Status: 408, Type: typeInvalid, Code: "request_timeout", Close: true,
			Message: "The request body did not arrive in time. Send it without pauses, and at 16 KB a second at least.",
		}
	}
	return &apiError{
		Status: 400, Type: typeInvalid, Code: "incomplete_body", Close: true,
		Message: "The request body ended early or was malformed.",
	}
}
