package proxy

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// firstBuffer is what a body gets before a byte of it has come: a declared length allocates nothing.
const firstBuffer = smallestBuffer

// body is a request body, held against the budget until every user of it has let go.
type body struct {
	bytes  []byte
	pool   *bufferPool
	budget *budget
	held   int64
	users  atomic.Int32
}

// hold adds a user.
func (b *body) hold() { b.users.Add(1) }

// release takes a user away; the last one gives the buffer back.
func (b *body) release() {
	if b.users.Add(-1) > 0 {
		return
	}
	b.budget.give(b.held)
	b.pool.put(b.bytes)
	b.bytes = nil
}

// bodyReader reads request bodies.
type bodyReader struct {
	pool   *bufferPool
	budget *budget
	limit  int64         // bytes of one body
	idle   time.Duration // longest wait for the next bytes
}

// read takes a whole body from r, which reads from conn. The body has one user.
func (br *bodyReader) read(r io.Reader, conn net.Conn) (*body, error) {
	b := &body{pool: br.pool, budget: br.budget}
	b.hold()
	if err := br.grow(b, firstBuffer); err != nil {
		br.discard(r, conn)
		return nil, err
	}
	for {
		if len(b.bytes) == cap(b.bytes) {
			if err := br.grow(b, int(min(4*int64(cap(b.bytes)), br.limit+1))); err != nil {
				b.release()
				br.discard(r, conn)
				return nil, err
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(br.idle)); err != nil {
			b.release()
			return nil, errClientGone
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if int64(len(b.bytes)) > br.limit {
			b.release()
			br.discard(r, conn)
			return nil, errTooLarge(br.limit)
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			b.release()
			return nil, bodyError(err)
		}
	}
}

// discard reads what is left of a body that is refused, within reason: a client that is still sending would not see the
// answer.
func (br *bodyReader) discard(r io.Reader, conn net.Conn) {
	if conn.SetReadDeadline(time.Now().Add(br.idle)) != nil {
		return
	}
	buffer := br.pool.get(smallestBuffer)
	defer br.pool.put(buffer)
	for left := 2 * br.limit; left > 0; {
		n, err := r.Read(buffer[:cap(buffer)])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

func (br *bodyReader) grow(b *body, size int) error {
	more := min(int64(size), br.limit) - b.held
	if !br.budget.take(more) {
		return errOverloaded()
	}
	b.held += more
	old := b.bytes
	b.bytes = append(br.pool.get(size), old...)
	if old != nil {
		br.pool.put(old)
	}
	return nil
}

var errClientGone = errors.New("client gone")

func bodyError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &apiError{
			Status: 408, Type: typeInvalid, Code: "request_timeout", Close: true,
			Message: "The request body did not arrive in time. Send it without pauses.",
		}
	}
	return &apiError{
		Status: 400, Type: typeInvalid, Code: "incomplete_body", Close: true,
		Message: "The request body ended early or was malformed.",
	}
}
