package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// message is what is known of one message.
type message struct {
	role, content, toolCalls, toolCallID, name, functionCall rawjson.Value
	thinking, details, reasoning, reasoningContent           rawjson.Value

	calls    []call
	function function // what functionCall holds
}

// call is one element of tool_calls.
type call struct {
	id, kind, function, custom rawjson.Value
	called                     function // what function holds
	input                      custom   // what custom holds
}

type function struct{ name, arguments rawjson.Value }

type custom struct{ name, input rawjson.Value }

func (m *message) reset() {
	clear(m.calls)
	*m = message{calls: m.calls[:0]}
}

func (m *message) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "role":
		return &m.role
	case "content":
		return &m.content
	case "tool_calls":
		return &m.toolCalls
	case "tool_call_id":
		return &m.toolCallID
	case "name":
		return &m.name
	case "function_call":
		return &m.functionCall
	case "thinking_blocks":
		return &m.thinking
	case "reasoning_details":
		return &m.details
	case "reasoning":
		return &m.reasoning
	case "reasoning_content":
		return &m.reasoningContent
	}
	return nil
}

func (c *call) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "id":
		return &c.id
	case "type":
		return &c.kind
	case "function":
		return &c.function
	case "custom":
		return &c.custom
	}
	return nil
}

func (f *function) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "name":
		return &f.name
	case "arguments":
		return &f.arguments
	}
	return nil
}

func (c *custom) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "name":
		return &c.name
	case "input":
		return &c.input
	}
	return nil
}

// reader reads the messages of one body.
type reader struct {
	w    *split.Walker
	msg  message
	call call            // of msg, being read
	ids  []rawjson.Value // of the calls of msg
}

// maxCalled is how many calls of one message are understood at most.
const maxCalled = 4 << 10

// maxKept is how much pooled scratch may hold.
const maxKept = 8 << 10

func newReader(w *split.Walker) split.Reader { return &reader{w: w} }

// Reset forgets the body, and scratch that grew too large to keep.
func (r *reader) Reset() {
	r.msg.reset()
	r.call = call{}
	clear(r.ids)
	r.msg.calls, r.ids = split.Recycle(r.msg.calls, maxKept), split.Recycle(r.ids, maxKept)
}

// Element reads one element of messages.
func (r *reader) Element() error {
	from := r.w.Offset()
	if !r.w.Enter() {
		r.w.Odd("a message is not an object")
		return nil
	}
	r.msg.reset()
	if err := r.w.Object(&r.msg, ""); err != nil || r.w.Failed() {
		return err
	}
	r.file(r.w.Text(from))
	return nil
}

// Text reports that a history is no text.
func (r *reader) Text(rawjson.Value) bool { return false }

// Close has nothing to file.
func (r *reader) Close() {}

// Take reads calls.
func (r *reader) Take(slot *rawjson.Value) (bool, error) {
	const noCall = "a tool call is not an object"
	switch slot {
	case &r.msg.toolCalls:
		return true, r.w.Each(slot, r.toolCall, "tool_calls is not an array")
	case &r.msg.functionCall:
		return true, r.w.Nested(slot, &r.msg.function, "function_call.", noCall)
	case &r.call.function:
		return true, r.w.Nested(slot, &r.call.called, "tool_calls.function.", noCall)
	case &r.call.custom:
		return true, r.w.Nested(slot, &r.call.input, "tool_calls.custom.", noCall)
	}
	return false, nil
}

// toolCall reads one element of tool_calls.
func (r *reader) toolCall() error {
	if !r.w.Enter() {
		r.w.Odd("a tool call is not an object")
		return nil
	}
	r.call = call{}
	if err := r.w.Object(&r.call, "tool_calls."); err != nil {
		return err
	}
	if len(r.msg.calls) == maxCalled {
		r.w.Odd("a message has too many tool calls")
		return nil
	}
	r.msg.calls = append(r.msg.calls, r.call)
	return nil
}

// file files the message that was read.
func (r *reader) file(raw []byte) {
	m := &r.msg
	role := m.roleName()
	filed := session.Message{Raw: raw, Kind: kindOf(role)}
	if filed.Kind == 0 {
		r.w.Odd("a message has a role that is not known")
		return
	}
	filed.Digest, filed.Attached = m.digest(r.w.Digest(), role), attached(m.content)
	var result rawjson.Value
	r.ids = r.ids[:0]
	switch filed.Kind {
	case session.Observation:
		result = m.answers()
	case session.Agent:
		filed.Sealed = m.bound()
		if r.addCalls(); len(r.ids) > 0 {
			filed.Kind = session.Action
		}
	}
	r.w.File(filed, r.w.Offset(), r.ids, result)
}

// addCalls keeps the ids of the calls that the message makes. The older function call has no id: its name stands for
// it, as in the result that answers it.
func (r *reader) addCalls() {
	for i := range r.msg.calls {
		r.ids = append(r.ids, r.msg.calls[i].id)
	}
	if r.msg.functionCall.Kind == rawjson.Object {
		r.ids = append(r.ids, r.msg.function.name)
	}
}

func (m *message) roleName() string {
	for _, role := range roles {
		if m.role.Is(role) {
			return role
		}
	}
	return ""
}

var roles = [...]string{"tool", "assistant", "user", "system", "developer", "function"}

// answers is the id of the call that a tool result answers. Results of the older function calls have the function's
// name in its place.
func (m *message) answers() rawjson.Value {
	if m.toolCallID.Kind != rawjson.String && m.role.Is("function") {
		return m.name
	}
	return m.toolCallID
}
