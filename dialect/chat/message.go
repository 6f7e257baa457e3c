package chat

import (
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

func (m *message) slot(name []byte) *rawjson.Value {
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

func (c *call) slot(name []byte) *rawjson.Value {
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

func (f *function) slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "name":
		return &f.name
	case "arguments":
		return &f.arguments
	}
	return nil
}

func (c *custom) slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "name":
		return &c.name
	case "input":
		return &c.input
	}
	return nil
}

// message reads one element of messages.
func (w *splitter) message() error {
	if w.index++; w.index >= maxMessages {
		w.odd = "there are too many messages"
	}
	from := w.scan.Offset()
	if !w.scan.Object() {
		w.odd = "a message is not an object"
		return nil
	}
	w.msg.reset()
	if err := w.object(&w.msg, ""); err != nil || w.odd != "" || w.scan.Err() != nil {
		return err
	}
	w.add(w.text[from:w.scan.Offset():w.scan.Offset()])
	return nil
}

// toolCall reads one element of tool_calls.
func (w *splitter) toolCall() error {
	if !w.scan.Object() {
		w.odd = "a tool call is not an object"
		return nil
	}
	w.call = call{}
	if err := w.object(&w.call, "tool_calls."); err != nil {
		return err
	}
	if len(w.msg.calls) == maxCalled {
		w.odd = "a message has too many tool calls"
		return nil
	}
	w.msg.calls = append(w.msg.calls, w.call)
	return nil
}

// add files the message that was read.
func (w *splitter) add(raw []byte) {
	m := &w.msg
	role := m.roleName()
	kind := kindOf(role)
	if kind == 0 {
		w.odd = "a message has a role that is not known"
		return
	}
	filed := session.Message{Raw: raw, Kind: kind, Digest: w.hash.message(role, m)}
	r := ref{from: len(w.ids.spans)}
	switch {
	case kind == session.Observation:
		r.result = w.ids.add(m.answers())
	case kind == session.Agent:
		filed.Sealed = m.bound()
		w.addCalls()
		if len(w.ids.spans) > r.from {
			filed.Kind = session.Action
		}
	}
	r.to = len(w.ids.spans)
	w.messages, w.refs, w.ends = append(w.messages, filed), append(w.refs, r), append(w.ends, w.scan.Offset())
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
