package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The canonical form of a message is the version below, followed by frames in this order:
//
//	role             developer counts as system
//	content          see split.Digest.Content
//	each call        id; type, unless function; name; arguments; custom name and input
//	tool_call_id, name, function_call
//
// Other keys of a message or a call are ignored: agents add their own, and reasoning, refusal, parsed, annotations, audio
// and cache_control come and go. Thinking parts are ignored too.
const version = "dewpoint/chat/1\n"

// Fields of a frame, in addition to those of all dialects.
const (
	fieldCall        = 'C' // starts a call
	fieldFunction    = 'F' // starts a function_call
	fieldID          = 'i'
	fieldType        = 't'
	fieldName        = 'n'
	fieldArguments   = 'a'
	fieldCustomName  = 'N'
	fieldCustomInput = 'I'
	fieldResult      = 'R'
)

// digest returns the digest of m, whose role is given.
func digest(h *split.Digest, m *split.Object, role string) session.Hash {
	h.Begin(role)
	h.Content(split.FieldContent, m.Get("content"))
	for v := range rawjson.Elements(m.Get("tool_calls").Raw) {
		c := split.Read(v, callKeys)
		h.Mark(fieldCall)
		h.Value(fieldID, c.Get("id"))
		if kind := c.Get("type"); !kind.Is("function") {
			h.Value(fieldType, kind)
		}
		addFunction(h, c.Get("function"))
		if custom := c.Get("custom"); custom.Kind == rawjson.Object {
			h.Value(fieldCustomName, split.Member(custom, "name"))
			h.Value(fieldCustomInput, split.Member(custom, "input"))
		}
	}
	h.Value(fieldResult, m.Get("tool_call_id"))
	h.Value(fieldName, m.Get("name"))
	if called := m.Get("function_call"); called.Kind == rawjson.Object {
		h.Mark(fieldFunction)
		addFunction(h, called)
	}
	return h.End()
}

// addFunction adds the name and arguments of a function call, if v is one.
func addFunction(h *split.Digest, v rawjson.Value) {
	if v.Kind == rawjson.Object {
		h.Value(fieldName, split.Member(v, "name"))
		h.Arguments(fieldArguments, split.Member(v, "arguments"))
	}
}
