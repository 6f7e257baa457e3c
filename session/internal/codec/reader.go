package codec

import (
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// reader takes fields from the front of b. After the first fault every field is zero and err says so, so that a record
// is read in one go and checked once.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	r.b, r.err = nil, ErrCorrupt
}

// end is the fault, if any; bytes left over are one.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return r.err
}

func (r *reader) version() {
	if r.byte() != version {
		r.fail()
	}
}

// form is the version of a record that may be sealed.
func (r *reader) form() byte {
	b := r.byte()
	if b != version && b != sealed {
		r.fail()
	}
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// bytes aliases the record.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) int() int {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) string() string { return string(r.bytes(r.uint())) }

// count is the length of a list whose items take at least one byte each, so that a corrupt one allocates nothing.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // no more than the bytes there are
}

func (r *reader) hash() (h session.Hash) {
	if r.byte() == 1 {
		copy(h[:], r.bytes(uint64(len(h))))
	}
	return h
}

func (r *reader) time() time.Time {
	sec, nsec := r.int(), r.uint()
	if nsec >= uint64(time.Second) {
		r.fail()
	}
	if r.err != nil {
		return time.Time{}
	}
	return time.Unix(int64(sec), int64(nsec)).UTC() //nolint:gosec // checked above
}
