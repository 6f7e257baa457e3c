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
	b := make([]byte, 0, 16+len(p.Thread)+len(p.Session)+len(p.Encoding))
	b = append(b, version)
	b = appendText(b, string(p.Thread))
	b = appendText(b, string(p.Session))
	b = binary.AppendVarint(b, int64(p.Pos))
	b = binary.AppendVarint(b, int64(p.Tokens))
	return appendText(b, p.Encoding)
}

// ParsePlace decodes a place, or returns ErrCorrupt. Strings that it has in common with like are not allocated anew.
func ParsePlace(b []byte, like session.Place) (p session.Place, err error) {
	if len(b) == 0 || b[0] != version {
		return p, ErrCorrupt
	}
	r, p := reader(b[1:]), session.Place{Thread: like.Thread, Session: like.Session, Encoding: like.Encoding}
	ok := r.text((*string)(&p.Thread)) && r.text((*string)(&p.Session)) && r.int(&p.Pos) && r.int(&p.Tokens) && r.text(&p.Encoding)
	return valid(p, nil, ok && len(r) == 0)
}

// reader reads fields from the front of a place. Its methods return false if the field is incomplete.
type reader []byte

func (r *reader) int(to *int) bool {
	n, size := binary.Varint(*r)
	if size <= 0 {
		return false
	}
	*to, *r = int(n), (*r)[size:]
	return true
}

func (r *reader) text(to *string) bool {
	n, size := binary.Uvarint(*r)
	if size <= 0 || n > uint64(len(*r)-size) { //nolint:gosec // size is within r
		return false
	}
	end := size + int(n) //nolint:gosec // n is within r
	if text := (*r)[size:end]; *to != string(text) {
		*to = string(text)
	}
	*r = (*r)[end:]
	return true
}

// The places that sealed content is bound to are built with the following functions, too.

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendHash writes a presence byte first, because many records have no hash.
func appendHash(b []byte, h session.Hash) []byte {
	if h.IsZero() {
		return append(b, 0)
	}
	return append(append(b, 1), h[:]...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond())) //nolint:gosec // below 1e9
}
