package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The keys that are known of a message, of a call in it, and of what a call holds.
var (
	messageKeys = []string{
		"role", "content", "tool_calls", "tool_call_id", "name", "function_call", "thinking_blocks", "reasoning_details", "reasoning",
		"reasoning_content",
	}
	callKeys     = []string{"id", "type", "function", "custom"}
	functionKeys = []string{"name", "arguments"}
	customKeys   = []string{"name", "input"}
)

// reader reads the messages of one body.
type reader struct{ w *split.Walker }

// maxCalled is how many calls of one message are understood at most.
const maxCalled = 4 << 10

// element reads one element of messages.
func (r reader) element(m *split.Object) error {
	called, err := r.calls(m.Get("tool_calls"))
	if err != nil {
		return err
	}
	function, err := r.w.Object(m.Get("function_call"), functionKeys, "function_call.", noCall)
	if err != nil || r.w.IsOdd() {
		return err
	}
	role := m.Get("role").Text()
	filed := session.Message{Raw: m.Raw, Kind: kinds[role], Attached: attached(m.Get("content"))}
	switch filed.Kind {
	case 0:
		r.w.Odd("a message has a role that is not known")
		return nil
	case session.Observation:
		filed.Result = answers(m).Text()
	case session.Agent:
		if filed.Sealed = bound(m); function.Raw != nil { // the older call has no id: its name stands for it, as in the result that answers it
			called = append(called, function.Get("name").Text())
		}
		if filed.Calls = called; len(called) > 0 {
			filed.Kind = session.Action
		}
	}
	filed.Digest = digest(r.w.Digest(), m, role)
	r.w.File(filed, r.w.Element().To)
	return nil
}

const noCall = "a tool call is not an object"

// calls checks the elements of tool_calls, and gives their ids.
func (r reader) calls(list rawjson.Value) (ids []string, err error) {
	switch list.Kind {
	case 0, rawjson.Null:
		return nil, nil
	case rawjson.Array:
	default:
		r.w.Odd("tool_calls is not an array")
	}
	err = r.w.Each(list, callKeys, "tool_calls.", noCall, func(c *split.Object, _ int) error {
		_, err := r.w.Object(c.Get("function"), functionKeys, "tool_calls.function.", noCall)
		if err == nil {
			_, err = r.w.Object(c.Get("custom"), customKeys, "tool_calls.custom.", noCall)
		}
		if len(ids) < maxCalled {
			ids = append(ids, c.Get("id").Text())
		} else {
			r.w.Odd("a message has too many tool calls")
		}
		return err
	})
	return ids, err
}

// answers is the id of the call that a tool result answers. Results of the older function calls have the function's
// name in its place.
func answers(m *split.Object) rawjson.Value {
	if id := m.Get("tool_call_id"); id.Kind == rawjson.String || !m.Get("role").Is("function") {
		return id
	}
	return m.Get("name")
}
