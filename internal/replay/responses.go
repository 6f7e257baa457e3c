package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// items is the Responses API, stateless: the agent sends its whole history. The translation keeps what a judge looks at: who speaks,
// texts, calls, results. Sealed reasoning is sent back as it came, with the ids of the items around it.
type items struct{}

// item is an item of the list, as far as it is translated.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Call      string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Output    *string         `json:"output,omitempty"`
}

func (items) Dialect() dialect.Dialect { return responses.New(split.Options{}) }

func (items) Path() string { return responses.Path }

func (i items) Body(p *player, history []json.RawMessage) ([]byte, error) {
	instructions, list := i.list(history)
	body := map[string]any{"store": false, "input": list, "include": []string{"reasoning.encrypted_content"}}
	if instructions != "" {
		body["instructions"] = instructions
	}
	return p.body(body)
}

// list translates a history. An agent that speaks again although it called nothing was told to go on: its two answers could not be told
// apart otherwise.
func (i items) list(history []json.RawMessage) (instructions string, list []json.RawMessage) {
	all := sound(history)
	for at, m := range all {
		switch {
		case leads(m.Role) && len(list) == 0:
			instructions += m.Content + "\n"
		case leads(m.Role):
			list = append(list, marshal(item{Type: "message", Role: "developer", Content: marshal(m.Content)}))
		case m.Role == "assistant":
			list = append(list, i.said(m)...)
			if rest := all[at+1:]; len(m.ToolCalls) == 0 && (len(rest) == 0 || rest[0].Role == "assistant") {
				list = append(list, marshal(item{Type: "message", Role: "user", Content: marshal("(go on)")}))
			}
		case m.Role == "tool":
			list = append(list, marshal(item{Type: "function_call_output", Call: m.Result, Output: &m.Content}))
		default:
			list = append(list, marshal(item{Type: "message", Role: "user", Content: marshal(m.Content)}))
		}
	}
	if len(list) == 0 || begins(list[0]) {
		begin := marshal(item{Type: "message", Role: "user", Content: marshal("(begin)")})
		list = append([]json.RawMessage{begin}, list...)
	}
	return instructions, list
}

// begins reports whether a run began with what its agent said: before that, its history was empty.
func begins(first json.RawMessage) bool {
	var it item
	_ = json.Unmarshal(first, &it)
	return it.Role != "user" && it.Role != "developer"
}

// said are the items of an assistant message.
func (items) said(m spoken) []json.RawMessage {
	if m.Items != nil {
		return m.Items
	}
	var list []json.RawMessage
	if strings.TrimSpace(m.Content) != "" || len(m.ToolCalls) == 0 {
		parts := []map[string]string{{"type": "output_text", "text": m.Content}}
		list = append(list, marshal(item{Type: "message", Role: "assistant", Content: marshal(parts)}))
	}
	for _, c := range m.ToolCalls {
		list = append(list, marshal(item{Type: "function_call", Call: c.ID, Name: c.Function.Name, Arguments: &c.Function.Arguments}))
	}
	return list
}

// Answer reads an answer as it came.
func (i items) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	var r struct{ Output []json.RawMessage }
	if !streamed {
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		return i.answered(r.Output)
	}
	for data := range eventsOf(body) {
		var e struct {
			Type string
			Item json.RawMessage
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, fmt.Errorf("read stream: %w", err)
		}
		switch e.Type {
		case "response.output_item.done":
			r.Output = append(r.Output, e.Item)
		case "response.completed":
			return i.answered(r.Output)
		}
	}
	return nil, errors.New("read stream: no response.completed")
}

// answered is the message that items make up, with the items where there is reasoning among them.
func (i items) answered(list []json.RawMessage) (json.RawMessage, error) {
	body, err := encode(map[string]any{"model": "", "input": list})
	if err != nil {
		return nil, err
	}
	raw, err := said(i.Dialect(), body)
	if err != nil {
		return nil, err
	}
	m := read(raw)
	for _, raw := range list {
		if it := (item{}); json.Unmarshal(raw, &it) == nil && it.Type == "reasoning" {
			m.Items = list
		}
	}
	return marshal(m), nil
}
