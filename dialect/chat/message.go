package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The known keys of a message, a call, a function and a custom tool.
var (
	messageKeys = []string{
		"role", "content", "tool_calls", "tool_call_id", "name", "function_call",
		"thinking_blocks", "reasoning_details", "reasoning", "reasoning_content",
	}
	callKeys     = []string{"id", "type", "function", "custom"}
	functionKeys = []string{"name", "arguments"}
	customKeys   = []string{"name", "input"}
)

// reader reads the messages of one body.
type reader struct{ w *split.Walker }

// maxCalls limits the calls of one message.
const maxCalls = 4 << 10

const callNotObject = "a tool call is not an object"

// element reads one element of messages.
func (r reader) element(m *split.Object) error {
	calls, err := r.calls(m.Get("tool_calls"))
	if err != nil {
		return err
	}
	function, err := r.w.Object(m.Get("function_call"), functionKeys, "function_call.", callNotObject)
	if err != nil || r.w.IsUnsupported() {
		return err
	}
	role, kind := roleOf(m.Get("role"))
	message := session.Message{Raw: m.Raw, Kind: kind, Attached: hasAttachment(m.Get("content"))}
	switch message.Kind {
	case 0:
		r.w.Unsupported("a message has an unknown role")
		return nil
	case session.Observation:
		message.Result = resultID(m).Text()
	case session.Agent:
		message.Sealed = hasBoundReasoning(m)
		if function.Raw != nil { // a function_call has no id: its result refers to it by name
			calls = append(calls, function.Get("name").Text())
		}
		message.Calls = calls
		if len(calls) > 0 {
			message.Kind = session.Action
		}
	}
	message.Digest = digest(&r.w.Digest, m, role)
	r.w.Add(message, r.w.ElementSpan().To)
	return nil
}

// calls validates the elements of tool_calls, and returns their ids.
func (r reader) calls(list rawjson.Value) (ids []string, err error) {
	switch list.Kind {
	case 0, rawjson.Null, rawjson.Array:
	default:
		r.w.Unsupported("tool_calls is not an array")
	}
	err = r.w.EachObject(list, callKeys, "tool_calls.", callNotObject, func(c *split.Object, _ int) error {
		_, err := r.w.Object(c.Get("function"), functionKeys, "tool_calls.function.", callNotObject)
		if err == nil {
			_, err = r.w.Object(c.Get("custom"), customKeys, "tool_calls.custom.", callNotObject)
		}
		if len(ids) < maxCalls {
			ids = append(ids, c.Get("id").Text())
		} else {
			r.w.Unsupported("a message has too many tool calls")
		}
		return err
	})
	return ids, err
}

// resultID returns the id of the call that a result belongs to. A result of a function_call has the name of the function
// instead.
func resultID(m *split.Object) rawjson.Value {
	if id := m.Get("tool_call_id"); id.Kind == rawjson.String || !m.Get("role").Is("function") {
		return id
	}
	return m.Get("name")
}

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
