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
