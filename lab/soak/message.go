package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// message is one of a history, as agents write them.
type message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"`
	ToolCalls  []call  `json:"tool_calls,omitempty"`
	ToolCallID string  `json:"tool_call_id,omitempty"`
}

// call is a tool call of a model's.
type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// The tools. Delegating starts a sub-agent, of which the argument is the task.
const (
	toolRead     = "read"
	toolExec     = "exec"
	toolDelegate = "delegate"
)

func (m message) raw() json.RawMessage { return encode(m) }

func text(role, content string) message { return message{Role: role, Content: &content} }

// encode writes JSON as agents do: < and & stay what they are.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only what this package writes itself comes here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// tools is the definitions that agents send.
const tools = `[{"type":"function","function":{"name":"` + toolRead + toolSchema + `},{"type":"function","function":{"name":"` + toolExec + toolSchema +
	`},{"type":"function","function":{"name":"` + toolDelegate + toolSchema + `}]`

const toolSchema = `","parameters":{"type":"object","properties":{"text":{"type":"string"}}}}`

// body writes a request, and tells where the messages are in it.
func (l *line) body() ([]byte, span) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model": %q, "messages": [`, modelMain)
	from := b.Len()
	for i, m := range l.messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	inside := span{from, b.Len()}
	fmt.Fprintf(&b, `], "temperature": 0.20, "tools": %s`, tools)
	if l.stream {
		b.WriteString(`, "stream": true, "stream_options": {"include_usage": true}`)
	}
	if l.metadata != "" {
		fmt.Fprintf(&b, `, "metadata": {"session_id": %q}`, l.metadata)
	}
	b.WriteByte('}')
	return b.Bytes(), inside
}
