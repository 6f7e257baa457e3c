package codec

import "encoding/binary"

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
