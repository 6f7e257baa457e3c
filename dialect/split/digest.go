package split

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Forms of a frame's data.
const (
	formText = 's' // a string, spelt canonically
	formJSON = 'j' // canonical JSON
	formRaw  = 'x' // bytes as they came
	formMark = '-' // none
)

// Digest makes the digests of messages, one after another: SHA-256 over a message's canonical form, which is what the message
// means, in one spelling. Agents rewrite messages between requests (another encoder, caching marks, reasoning left out), and the
// digest must not notice; but two messages that a model reads differently must never share one.
//
// A canonical form is its version and then frames. A frame is a field byte, a form byte, the length and the data, so no two
// sequences of frames read the same. null is missing.
//
// JSON compares without regard to the order of members and white space; numbers compare by their text. JSON that is nested
// beyond 64 levels compares byte for byte. Text compares decoded; a lone surrogate stays distinct.
type Digest struct {
	buf   []byte // the canonical form of a message
	canon canon

	hashed int // bytes, of all digests
}

// Work tells what the digests of a body cost: steps that are more than linear, bytes that were hashed, bytes of scratch.
func (h *Digest) Work() (steps, hashed, room int) {
	c := &h.canon
	return c.steps, h.hashed, cap(h.buf) + cap(c.buf) + cap(c.swap) + cap(c.plain)
}

// Begin begins the digest of a message.
func (h *Digest) Begin() { h.buf = append(h.buf[:0], h.canon.format.Version...) }

// End gives the digest.
func (h *Digest) End() session.Hash {
	h.hashed += len(h.buf)
	return sha256.Sum256(h.buf)
}

// Content adds what a message says: no frame for null, missing, "" and []; the text of a string or of a lone text part; else a
// frame for each part. Of a part, everything counts but cache_control and null members; parts that the format skips do not.
// More than 16 Ki parts compare byte for byte.
func (h *Digest) Content(content, part byte, v rawjson.Value) {
	switch v.Kind {
	case rawjson.Array:
		h.parts(content, part, v)
	case rawjson.String:
		if len(v.Inner()) > 0 {
			h.Value(content, v)
		}
	default:
		h.Value(content, v)
	}
}

func (h *Digest) parts(content, part byte, v rawjson.Value) {
	c := &h.canon
	if !c.list(v.Raw) {
		h.frame(content, formRaw, v.Raw)
		return
	}
	if text, ok := c.lone(); ok {
		h.Content(content, part, text)
		return
	}
	for _, p := range c.parts {
		h.frame(part, formJSON, c.buf[p.from:p.to])
	}
}

// Arguments adds the arguments of a call. They compare as JSON, also where a string holds it; empty and missing ones are {}.
func (h *Digest) Arguments(field byte, v rawjson.Value) {
	switch {
	case v.Kind == 0 || v.Kind == rawjson.Null || v.Kind == rawjson.String && len(v.Inner()) == 0:
		h.frame(field, formJSON, []byte("{}"))
	case v.Kind != rawjson.String:
		h.Value(field, v)
	case h.canon.arguments(v.Inner()):
		h.frame(field, formJSON, h.canon.buf)
	default:
		h.Value(field, v)
	}
}

// Value adds a frame for v: none for null, the text of a string, canonical JSON for the rest.
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

// Word adds a frame with a short text.
func (h *Digest) Word(field byte, text string) { h.frame(field, formText, []byte(text)) }

// Mark adds a frame that says only that something begins.
func (h *Digest) Mark(field byte) { h.frame(field, formMark, nil) }

func (h *Digest) frame(field, form byte, data []byte) {
	h.buf = binary.AppendUvarint(append(h.buf, field, form), uint64(len(data)))
	h.buf = append(h.buf, data...)
}
