package chat

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The digest of a message is SHA-256 over its canonical form: what the message means, in one spelling. Agents rewrite
// messages between requests (another encoder, caching marks, reasoning left out), and the digest must not notice; but
// two messages that a model reads differently must never share one.
//
// The canonical form is the version below and then frames, in this order:
//
//	role             developer counts as system
//	content          none for null, missing, "" and []; the text of a string or of a lone text part; else each part
//	each call        id; type, if not function; name; arguments; custom name and input
//	tool_call_id, name, function_call
//
// A frame is a field byte, a form byte, the length and the data, so no two sequences of frames read the same. null is
// missing. All other keys of a message or a call do not count: agents add local ones, and reasoning, refusal, parsed,
// annotations, audio, cache_control come and go. Thinking parts do not count either. Of a part, everything counts but
// cache_control and null members.
//
// Arguments compare as JSON: member order and white space do not count, numbers compare by their text. Empty and missing
// arguments are {}. Arguments that are no JSON, are nested beyond canonDepth or hold lone surrogates compare as text.
// Text compares decoded; a lone surrogate stays distinct. Content nested beyond canonDepth or with more than
// maxParts parts compares byte for byte.
const version = "dewpoint/chat/1\n"

// Fields of a frame.
const (
	fieldRole        = 'r'
	fieldContent     = 'c'
	fieldPart        = 'p'
	fieldCall        = 'C' // begins a call
	fieldFunction    = 'F' // begins a function_call
	fieldID          = 'i'
	fieldType        = 't'
	fieldName        = 'n'
	fieldArguments   = 'a'
	fieldCustomName  = 'N'
	fieldCustomInput = 'I'
	fieldResult      = 'R'
)

// Forms of a frame's data.
const (
	formText = 's' // a string, spelt canonically
	formJSON = 'j' // canonical JSON
	formRaw  = 'x' // bytes as they came
	formMark = '-' // none
)

// hasher makes digests, one after another.
type hasher struct {
	state hash.Hash
	buf   []byte // not yet in state
	begun bool   // state has something
	sum   session.Hash
	canon canon

	hashed int // bytes, of all digests
}

const (
	hashBuffer = 8 << 10
	hashDirect = 2 << 10 // data that is not worth a copy
)

func newHasher() hasher { return hasher{state: sha256.New(), buf: make([]byte, 0, hashBuffer)} }

func (h *hasher) reset() {
	h.canon.reset()
	h.hashed = 0
}

// message is the digest of m, which has role.
func (h *hasher) message(role string, m *message) session.Hash {
	if role == "developer" {
		role = "system"
	}
	h.buf, h.begun = append(h.buf[:0], version...), false
	h.word(fieldRole, formText, role)
	h.content(m.content)
	for i := range m.calls {
		h.call(&m.calls[i])
	}
	h.value(fieldResult, m.toolCallID)
	h.value(fieldName, m.name)
	if m.functionCall.Kind == rawjson.Object {
		h.word(fieldFunction, formMark, "")
		h.function(&m.function)
	}
	return h.end()
}

func (h *hasher) end() session.Hash {
	if !h.begun {
		h.hashed += len(h.buf)
		return sha256.Sum256(h.buf)
	}
	h.flush()
	h.state.Sum(h.sum[:0])
	return h.sum
}

func (h *hasher) content(v rawjson.Value) {
	switch v.Kind {
	case rawjson.Array:
		h.parts(v)
	case rawjson.String:
		if len(v.Inner()) > 0 {
			h.value(fieldContent, v)
		}
	default:
		h.value(fieldContent, v)
	}
}

func (h *hasher) parts(v rawjson.Value) {
	c := &h.canon
	if !c.list(v.Raw) {
		h.frame(fieldContent, formRaw, v.Raw)
		return
	}
	if text, ok := c.lone(); ok {
		h.content(text)
		return
	}
	for _, p := range c.parts {
		h.frame(fieldPart, formJSON, c.buf[p.from:p.to])
	}
}

func (h *hasher) call(c *call) {
	h.word(fieldCall, formMark, "")
	h.value(fieldID, c.id)
	if !c.kind.Is("function") {
		h.value(fieldType, c.kind)
	}
	if c.function.Kind == rawjson.Object {
		h.function(&c.called)
	}
	if c.custom.Kind == rawjson.Object {
		h.value(fieldCustomName, c.input.name)
		h.value(fieldCustomInput, c.input.input)
	}
}

func (h *hasher) function(f *function) {
	h.value(fieldName, f.name)
	v := f.arguments
	switch {
	case v.Kind == 0 || v.Kind == rawjson.Null || v.Kind == rawjson.String && len(v.Inner()) == 0:
		h.word(fieldArguments, formJSON, "{}")
	case v.Kind != rawjson.String:
		h.value(fieldArguments, v)
	case h.canon.arguments(v.Inner()):
		h.frame(fieldArguments, formJSON, h.canon.buf)
	default:
		h.value(fieldArguments, v)
	}
}

// value adds a frame for v: none for null, the text of a string, canonical JSON for the rest.
func (h *hasher) value(field byte, v rawjson.Value) {
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

func (h *hasher) frame(field, form byte, data []byte) {
	if len(h.buf)+len(data)+16 > hashBuffer {
		h.flush()
	}
	h.buf = append(h.buf, field, form)
	h.buf = binary.AppendUvarint(h.buf, uint64(len(data)))
	if len(data) <= hashDirect {
		h.buf = append(h.buf, data...)
		return
	}
	h.flush()
	h.state.Write(data)
	h.hashed += len(data)
}

// word is a frame of a few bytes.
func (h *hasher) word(field, form byte, data string) {
	if len(h.buf)+len(data)+16 > hashBuffer {
		h.flush()
	}
	h.buf = append(h.buf, field, form)
	h.buf = binary.AppendUvarint(h.buf, uint64(len(data)))
	h.buf = append(h.buf, data...)
}

func (h *hasher) flush() {
	if !h.begun {
		h.state.Reset()
		h.begun = true
	}
	h.state.Write(h.buf)
	h.hashed += len(h.buf)
	h.buf = h.buf[:0]
}
