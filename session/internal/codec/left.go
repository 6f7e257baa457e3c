package codec

import (
	"encoding/binary"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Answer encodes a. Answers may be concatenated.
func Answer(a session.Answer) []byte {
	b := binary.AppendUvarint(nil, uint64(a.Pos)) //nolint:gosec // never negative
	return binary.LittleEndian.AppendUint64(b, a.Request)
}

// ParseAnswers decodes concatenated answers, up to the first that is damaged.
func ParseAnswers(b []byte) (all []session.Answer) {
	for len(b) > 0 {
		pos, size := binary.Uvarint(b)
		if size <= 0 || len(b) < size+8 {
			break
		}
		all = append(all, session.Answer{Pos: int(pos), Request: binary.LittleEndian.Uint64(b[size:])}) //nolint:gosec // the same 64 bits
		b = b[size+8:]
	}
	return all
}
