package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// items is the Responses API, used without state: the agent sends its whole history. The translation keeps what the judge checks:
// roles, texts, calls and results. Sealed reasoning is sent back unchanged, with the ids of the items around it.
type items struct{}

// item is an item of the input, with the fields that are translated.
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

func (items) Path(*player) string { return responses.Path }

func (i items) Body(p *player, history []json.RawMessage) []byte {
	instructions, messages := i.list(history)
	list := slices.Concat(messages...)
	body := map[string]any{"store": false, "input": list, "include": []string{"reasoning.encrypted_content"}}
	if instructions != "" {
		body["instructions"] = instructions
	}
	return p.body(body)
}

// list translates a history to the items of each message. After an assistant message without a call it inserts a user message if another assistant message or
// nothing follows, since two answers in a row could not be told apart. A history that begins with output of the model gets a prompt.
func (i items) list(history []json.RawMessage) (instructions string, list [][]json.RawMessage) {
	add := func(items ...json.RawMessage) { list = append(list, items) }
	all := normalise(history)
	for at, m := range all {
		last := at == len(all)-1
		switch {
		case isSystem(m.Role) && len(list) == 0:
			instructions += m.Content + "\n"
		case isSystem(m.Role):
			add(marshal(item{Type: "message", Role: "developer", Content: marshal(m.Content)}))
		case m.Role == "assistant":
			add(i.outputs(m)...)
			if len(m.ToolCalls) == 0 && (last || all[at+1].Role == "assistant") {
				add(marshal(item{Type: "message", Role: "user", Content: marshal("(go on)")}))
			}
		case m.Role == "tool":
			add(marshal(item{Type: "function_call_output", Call: m.Result, Output: &m.Content}))
		default:
			add(marshal(item{Type: "message", Role: "user", Content: marshal(m.Content)}))
		}
	}
	first := slices.IndexFunc(all, func(m chatMessage) bool { return !isSystem(m.Role) })
	if first < 0 || all[first].Role == "assistant" || all[first].Role == "tool" {
		begin := marshal(item{Type: "message", Role: "user", Content: marshal("(begin)")})
		list = append([][]json.RawMessage{{begin}}, list...)
	}
	return instructions, list
}

// outputs returns the items of an assistant message.
func (items) outputs(m chatMessage) []json.RawMessage {
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

// Answer implements protocol.
func (i items) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	var r struct{ Output []json.RawMessage }
	if !streamed {
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		return i.message(r.Output)
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
			return i.message(r.Output)
		}
	}
	return nil, errors.New("read stream: no response.completed")
}

// message translates output items to a message. If they include reasoning, the message keeps the items.
func (i items) message(list []json.RawMessage) (json.RawMessage, error) {
	raw, err := lastAnswer(i.Dialect(), marshal(map[string]any{"model": "", "input": list}))
	if err != nil {
		return nil, err
	}
	m := readMessage(raw)
	for _, raw := range list {
		var it item
		if json.Unmarshal(raw, &it) == nil && it.Type == "reasoning" {
			m.Items = list
		}
	}
	return marshal(m), nil
}
