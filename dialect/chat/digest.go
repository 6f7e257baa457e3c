package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The canonical form of a message is the version below and then frames, in this order:
//
//	role             developer counts as system
//	content          none for null, missing, "" and []; the text of a string or of a lone text part; else each part
//	each call        id; type, if not function; name; arguments; custom name and input
//	tool_call_id, name, function_call
//
// All other keys of a message or a call do not count: agents add local ones, and reasoning, refusal, parsed, annotations,
// audio, cache_control come and go. Thinking parts do not count either.
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

// digest is the digest of m, which has role.
func (m *message) digest(h *split.Digest, role string) session.Hash {
	if role == "developer" {
		role = "system"
	}
	h.Begin()
	h.Word(fieldRole, role)
	h.Content(fieldContent, fieldPart, m.content)
	for i := range m.calls {
		m.calls[i].digest(h)
	}
	h.Value(fieldResult, m.toolCallID)
	h.Value(fieldName, m.name)
	if m.functionCall.Kind == rawjson.Object {
		h.Mark(fieldFunction)
		m.function.digest(h)
	}
	return h.End()
}

func (c *call) digest(h *split.Digest) {
	h.Mark(fieldCall)
	h.Value(fieldID, c.id)
	if !c.kind.Is("function") {
		h.Value(fieldType, c.kind)
	}
	if c.function.Kind == rawjson.Object {
		c.called.digest(h)
	}
	if c.custom.Kind == rawjson.Object {
		h.Value(fieldCustomName, c.input.name)
		h.Value(fieldCustomInput, c.input.input)
	}
}

func (f *function) digest(h *split.Digest) {
	h.Value(fieldName, f.name)
	h.Arguments(fieldArguments, f.arguments)
}
