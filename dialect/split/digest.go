package split

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Forms of the data in a frame.
const (
	formText = 's' // a canonical string
	formJSON = 'j' // canonical JSON
	formRaw  = 'x' // verbatim bytes
	formMark = '-' // no data
)

// Fields of frames in all dialects. A dialect has others in addition.
const (
	fieldRole    = 'r'
	FieldContent = 'c'
	fieldPart    = 'p' // of content
)

// Digest computes the digests of messages, one after another: SHA-256 of the canonical form of a message. Agents rewrite
// messages between requests: they use another encoder, move cache marks, leave reasoning out. A digest must not depend on
// that, but two messages that a model reads differently must never share one.
//
// A canonical form is its version followed by frames. A frame is a field byte, a form byte, the length as a varint and the
// data, so that no two sequences of frames have the same encoding. A null value has no frame, like a missing one.
//
// The order of JSON members and white space do not count. Numbers are compared as written. JSON nested deeper than 64
// levels is compared byte for byte. Strings are compared decoded, except that lone surrogates remain distinct.
type Digest struct {
	buf   []byte // the canonical form of a message
	canon canon

	hashed int // bytes hashed for all digests
}

// Work returns the cost of all digests so far: steps that are not linear in the size, bytes hashed, and bytes of scratch
// space.
func (h *Digest) Work() (steps, hashed, scratch int) {
	c := &h.canon
	return c.steps, h.hashed, cap(h.buf) + cap(c.buf) + cap(c.swap) + cap(c.plain)
}

// Begin starts the digest of a message with its role. A developer counts as system.
func (h *Digest) Begin(role string) {
	if role == "developer" {
		role = "system"
	}
	h.buf = append(h.buf[:0], h.canon.format.Version...)
	h.Word(fieldRole, role)
}

// End returns the digest.
func (h *Digest) End() session.Hash {
	h.hashed += len(h.buf)
	return sha256.Sum256(h.buf)
}

// Message returns the digest of a message with nothing but a role and content.
func (h *Digest) Message(role string, content rawjson.Value) session.Hash {
	h.Begin(role)
	h.Content(FieldContent, content)
	return h.End()
}

// Content adds the content of a message. There is no frame for null, a missing value, "" and []. A string, or a single text
// part, gives a frame with its text. Any other list gives a frame for each part, without cache_control, null members and
// those in Format.Drop; parts that Format.Skip matches give none. Content of more than 16 Ki parts is compared byte for byte.
func (h *Digest) Content(field byte, v rawjson.Value) {
	switch {
	case v.Kind == rawjson.Array:
		h.parts(field, v)
	case v.Kind != rawjson.String || len(v.Inner()) > 0:
		h.Value(field, v)
	}
}

func (h *Digest) parts(field byte, v rawjson.Value) {
	c := &h.canon
	if !c.list(v.Raw) {
		h.frame(field, formRaw, v.Raw)
		return
	}
	if text, ok := c.singleText(); ok {
		h.Content(field, text)
		return
	}
	for _, p := range c.parts {
		h.frame(fieldPart, formJSON, c.buf[p.from:p.to])
	}
}

// Arguments adds the arguments of a call. JSON inside a string is compared as JSON. Empty and missing arguments equal {}.
func (h *Digest) Arguments(field byte, v rawjson.Value) {
	switch {
	case v.Kind == 0 || v.Kind == rawjson.Null || v.Kind == rawjson.String && len(v.Inner()) == 0:
		h.frame(field, formJSON, []byte("{}"))
	case v.Kind == rawjson.String && h.canon.arguments(v.Inner()):
		h.frame(field, formJSON, h.canon.buf)
	default:
		h.Value(field, v)
	}
}

// Value adds a frame with the text of a string, or canonical JSON for another value. A null or missing value has no frame.
func (h *Digest) Value(field byte, v rawjson.Value) {
	switch {
	case v.Kind == 0 || v.Kind == rawjson.Null:
	case v.Kind == rawjson.String:
		h.frame(field, formText, h.canon.text(v))
	case h.canon.json(v.Raw):
		h.frame(field, formJSON, h.canon.buf)
	default:
		h.frame(field, formRaw, v.Raw)
	}
}

// Word adds a frame with text that needs no decoding.
func (h *Digest) Word(field byte, text string) { h.frame(field, formText, []byte(text)) }

// Mark adds a frame without data, which marks the start of something.
func (h *Digest) Mark(field byte) { h.frame(field, formMark, nil) }

func (h *Digest) frame(field, form byte, data []byte) {
	h.buf = binary.AppendUvarint(append(h.buf, field, form), uint64(len(data)))
	h.buf = append(h.buf, data...)
}
