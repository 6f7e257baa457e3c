package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// chatMessage is a message of Chat Completions.
type chatMessage struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	Result    string     `json:"tool_call_id,omitempty"`
	Blocks    []block    `json:"thinking_blocks,omitempty"`

	Items []json.RawMessage `json:"reasoning_details,omitempty"` // output items of the Responses API, if they include reasoning
}

// normalise returns a history as protocols with stricter rules require it: each result follows its call directly, and ids are unique.
// It turns a result without a call, and a call without a result, into text.
func normalise(history []json.RawMessage) []chatMessage {
	all := make([]chatMessage, len(history))
	for i, raw := range history {
		all[i] = readMessage(raw)
	}
	renamed := map[string]string{} // by the original id, since some runs reuse ids
	var open []string              // renamed ids of the last message's calls
	for i := range all {
		m := &all[i]
		switch m.Role {
		case "assistant":
			var calls []toolCall
			open = open[:0]
			for _, c := range m.ToolCalls {
				if !hasResult(all[i+1:], c.ID) && i+1 < len(all) {
					m.Content += "\n(a call without a result)"
					m.Items = nil
					continue
				}
				id := c.ID
				if renamed[id] != "" {
					id = fmt.Sprintf("%s.%d", id, i)
					m.Items = nil
				}
				renamed[c.ID] = id
				c.ID = id
				calls = append(calls, c)
				open = append(open, id)
			}
			m.ToolCalls = calls
		case "tool", "function":
			id := renamed[m.Result]
			at := slices.Index(open, id)
			if id == "" || at < 0 {
				m.Role = "user"
				continue
			}
			m.Role, m.Result = "tool", id
			open[at] = ""
		}
	}
	return all
}

// isSystem reports whether messages of a role belong to the system prompt, if they come first.
func isSystem(role string) bool { return role == "system" || role == "developer" }

// hasResult reports whether a call has its result before any message that is not a result.
func hasResult(rest []chatMessage, id string) bool {
	for _, m := range rest {
		if m.Role != "tool" && m.Role != "function" {
			return false
		}
		if m.Result == id {
			return true
		}
	}
	return false
}

func orEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

func readMessage(raw json.RawMessage) chatMessage {
	var m struct {
		chatMessage
		Content json.RawMessage `json:"content"` // a text or parts
	}
	_ = json.Unmarshal(raw, &m)
	m.chatMessage.Content = textOf(m.Content)
	return m.chatMessage
}

// toolCall is a tool call of Chat Completions.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// sameAnswer checks that the text and the tool calls of an answer arrived unchanged. Some protocols have no empty texts.
func sameAnswer(got, want session.Content) error {
	if orEmpty(got.Text) != orEmpty(want.Text) || !slices.Equal(got.Calls, want.Calls) {
		return fmt.Errorf("answer was changed: got %.200s, want %.200s", marshal(got), marshal(want))
	}
	return nil
}

func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// marshal encodes a value, leaving the raw messages in it unchanged. It returns nil if one of them is not JSON.
func marshal(v any) json.RawMessage { return assemble.Encode(v) }
