package codec

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// version is the first byte of a place.
const version byte = 2

// encodings are the names of encodings that a place stores as their index. The list may grow, but its order never changes.
var encodings = []string{"", "o200k_base", "cl100k_base"}

// Short returns the part of a hash that the key of a place or a trace has. Nobody without the secret can find two hashes that have it in
// common.
func Short(h session.Hash) string { return string(h[:ShortLen]) }

// ShortLen is the length of a Short hash. A longer key takes more memory in Redis.
const ShortLen = 20

// JoinShort concatenates the Short forms of hashes.
func JoinShort(hashes []session.Hash) []byte {
	all := make([]byte, 0, len(hashes)*ShortLen)
	for i := range hashes {
		all = append(all, hashes[i][:ShortLen]...)
	}
	return all
}

// InThread returns what the encoded places of a thread begin with.
func InThread(thread session.ThreadID) []byte { return appendID([]byte{version}, string(thread)) }

// Place encodes p. There are many places, and a key of Redis with a value of up to 44 bytes takes much less memory. Therefore ids of
// hexadecimal digits and well-known encodings are stored in a shorter form.
func Place(p session.Place) []byte {
	b := make([]byte, 0, 16+len(p.Thread)+len(p.Session)+len(p.Encoding))
	b = append(b, version)
	b = appendID(b, string(p.Thread))
	b = appendID(b, string(p.Session))
	b = binary.AppendVarint(b, int64(p.Pos))
	b = binary.AppendVarint(b, int64(p.Tokens))
	if known := slices.Index(encodings, p.Encoding); known >= 0 {
		return append(b, byte(known)) //nolint:gosec // few
	}
	return appendText(append(b, byte(len(encodings))), p.Encoding) //nolint:gosec // few
}

// ParsePlace decodes a place, or returns ErrCorrupt. Strings that it has in common with like are not allocated anew.
func ParsePlace(b []byte, like session.Place) (p session.Place, err error) {
	if len(b) == 0 || b[0] != version {
		return p, ErrCorrupt
	}
	r, p := reader(b[1:]), session.Place{Thread: like.Thread, Session: like.Session, Encoding: like.Encoding}
	ok := r.id((*string)(&p.Thread)) && r.id((*string)(&p.Session)) && r.int(&p.Pos) && r.int(&p.Tokens) && r.encoding(&p.Encoding)
	return valid(p, nil, ok && len(r) == 0)
}

// appendID appends an id after its length, which is doubled. If the id consists of pairs of hexadecimal digits, the bytes that they stand
// for follow, and the doubled length is odd.
func appendID(b []byte, id string) []byte {
	var digits [maxDigits / 2]byte
	if n, err := hex.Decode(digits[:], []byte(id[:min(len(id), maxDigits)])); err == nil && 2*n == len(id) && strings.ToLower(id) == id {
		return append(binary.AppendUvarint(b, uint64(2*n+1)), digits[:n]...) //nolint:gosec // at most maxDigits
	}
	return append(binary.AppendUvarint(b, uint64(2*len(id))), id...)
}

// maxDigits is the maximum length of an id that is stored as bytes.
const maxDigits = 64

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
	if size <= 0 {
		return false
	}
	*r = (*r)[size:]
	text, ok := r.next(n)
	setString(to, text)
	return ok
}

func (r *reader) id(to *string) bool {
	n, size := binary.Uvarint(*r)
	if size <= 0 {
		return false
	}
	*r = (*r)[size:]
	text, ok := r.next(n / 2)
	if n%2 == 1 && ok {
		if len(text) > maxDigits/2 {
			return false
		}
		var digits [maxDigits]byte
		text = digits[:hex.Encode(digits[:], text)]
	}
	setString(to, text)
	return ok
}

func (r *reader) encoding(to *string) bool {
	known, ok := r.next(1)
	switch {
	case !ok || int(known[0]) > len(encodings):
		return false
	case int(known[0]) < len(encodings):
		*to = encodings[known[0]]
		return true
	}
	return r.text(to)
}

// next returns the next n bytes.
func (r *reader) next(n uint64) ([]byte, bool) {
	if n > uint64(len(*r)) {
		return nil, false
	}
	text := (*r)[:n]
	*r = (*r)[n:]
	return text, true
}

// setString sets a string, and does not allocate if it is the same.
func setString(to *string, text []byte) {
	if *to != string(text) {
		*to = string(text)
	}
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
