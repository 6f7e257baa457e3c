package codec

import (
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// version is the first byte of a place.
const version byte = 1

// Place encodes p.
func Place(p session.Place) []byte {
	b := append(make([]byte, 0, 16+len(p.Thread)+len(p.Session)+len(p.Encoding)), version)
	b = appendText(appendText(b, string(p.Thread)), string(p.Session))
	b = binary.AppendVarint(binary.AppendVarint(b, int64(p.Pos)), int64(p.Tokens))
	return appendText(b, p.Encoding)
}

// ParsePlace reads what Place wrote, or ErrCorrupt.
func ParsePlace(b []byte) (p session.Place, err error) {
	if len(b) == 0 || b[0] != version {
		return p, ErrCorrupt
	}
	r := reader(b[1:])
	is := r.text((*string)(&p.Thread)) && r.text((*string)(&p.Session)) && r.int(&p.Pos) && r.int(&p.Tokens) && r.text(&p.Encoding)
	return whole(p, nil, is && len(r) == 0)
}

// reader takes fields from the front of a place, and reports whether they were there.
type reader []byte

func (r *reader) int(to *int) bool {
	n, size := binary.Varint(*r)
	*to, *r = int(n), (*r)[max(size, 0):]
	return size > 0
}

func (r *reader) text(to *string) bool {
	n, size := binary.Uvarint(*r)
	if size <= 0 || n > uint64(len(*r)-size) { //nolint:gosec // size is within r
		return false
	}
	end := size + int(n) //nolint:gosec // n is within r
	*to, *r = string((*r)[size:end]), (*r)[end:]
	return true
}

// What sealed content is bound to is made of fields, too.

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendHash writes a presence byte first, because many records have none.
func appendHash(b []byte, h session.Hash) []byte {
	if h.IsZero() {
		return append(b, 0)
	}
	return append(append(b, 1), h[:]...)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond())) //nolint:gosec // below 1e9
}
