package condensetest

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Codec reads and writes messages in a minimal Chat Completions format. It is for tests only.
type Codec struct{}

// Read decodes a message.
func (Codec) Read(raw []byte) (session.Content, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return session.Content{}, err
	}
	c := session.Content{Role: m.Role, Text: m.Content, Result: m.ToolCallID}
	for _, call := range m.ToolCalls {
		c.Calls = append(c.Calls, session.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return c, nil
}

// Rewrite replaces the text of a message.
func (c Codec) Rewrite(raw []byte, text string) ([]byte, error) {
	content, err := c.Read(raw)
	if err != nil {
		return nil, err
	}
	content.Text = text
	return Message(content).Raw, nil
}

type message struct {
	Role       string `json:"role"`
	Content    string `json:"content,omitempty"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Message encodes a message.
func Message(c session.Content) session.Message {
	m := message{Role: c.Role, Content: c.Text, ToolCallID: c.Result}
	out := session.Message{Kind: kind(c), Result: c.Result}
	for _, k := range c.Calls {
		one := call{ID: k.ID, Type: "function"}
		one.Function.Name, one.Function.Arguments = k.Name, k.Arguments
		m.ToolCalls = append(m.ToolCalls, one)
		out.Calls = append(out.Calls, k.ID)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	out.Raw, out.Digest = raw, sha256.Sum256(raw)
	return out
}

func kind(c session.Content) session.Kind {
	switch {
	case c.Role == "system" || c.Role == "developer":
		return session.System
	case c.Role == "user":
		return session.User
	case c.Role == "tool":
		return session.Observation
	case len(c.Calls) > 0:
		return session.Action
	}
	return session.Agent
}
