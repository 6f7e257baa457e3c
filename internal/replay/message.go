package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// spoken is a message of Chat Completions.
type spoken struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	Result    string     `json:"tool_call_id,omitempty"`
	Blocks    []block    `json:"thinking_blocks,omitempty"`

	Items []json.RawMessage `json:"reasoning_details,omitempty"` // what the Responses API gave, where there is reasoning among that
}

// sound gives a history as protocols with stricter rules take it: each call has its result right behind it, ids are used once. What is
// not so (a result without its call, a call without its result) is told in words.
func sound(history []json.RawMessage) []spoken {
	all := make([]spoken, len(history))
	for i, raw := range history {
		all[i] = read(raw)
	}
	names := map[string]string{} // ids are used again in some runs
	var open []string
	for i := range all {
		m := &all[i]
		switch m.Role {
		case "assistant":
			var calls []toolCall
			open = open[:0]
			for _, c := range m.ToolCalls {
				if !answered(all[i+1:], c.ID) && i+1 < len(all) {
					m.Content, m.Items = m.Content+"\n(a call without a result)", nil
					continue
				}
				id := c.ID
				if names[id] != "" {
					id, m.Items = fmt.Sprintf("%s.%d", id, i), nil
				}
				names[c.ID], c.ID = id, id
				calls, open = append(calls, c), append(open, id)
			}
			m.ToolCalls = calls
		case "tool", "function":
			if at := slices.Index(open, names[m.Result]); at >= 0 && names[m.Result] != "" {
				m.Role, m.Result, open[at] = "tool", names[m.Result], ""
			} else {
				m.Role = "user"
			}
		}
	}
	return all
}

// leads reports whether messages of a role make up the system prompt, where they stand first.
func leads(role string) bool { return role == "system" || role == "developer" }

// answered reports whether a call has its result before anybody else speaks.
func answered(rest []spoken, id string) bool {
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

func read(raw json.RawMessage) spoken {
	var m struct {
		spoken
		Content json.RawMessage `json:"content"` // a text, or parts
	}
	_ = json.Unmarshal(raw, &m)
	m.spoken.Content = textOf(m.Content)
	return m.spoken
}
