package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
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

// laterSystem returns the number of system messages after the first other message. They do not count as events.
func laterSystem(messages []json.RawMessage) (later int) {
	begun := false
	for _, raw := range messages {
		system := isSystem(readMessage(raw).Role)
		if begun = begun || !system; begun && system {
			later++
		}
	}
	return later
}

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
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// eventsOf yields the data of a stream's events.
func eventsOf(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(stream) {
			if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok && !yield(data) {
				return
			}
		}
	}
}

// readChunks assembles a streamed answer of Chat Completions, as a client does.
func readChunks(stream []byte) (json.RawMessage, error) {
	message := assemble.Piece{}
	for data := range eventsOf(stream) {
		if string(data) == "[DONE]" {
			return assemble.Encode(message), nil
		}
		chunk := assemble.Decode(data)
		if chunk == nil {
			return nil, fmt.Errorf("read stream: %.200s is not an object", data)
		}
		choices, _ := chunk["choices"].([]any)
		for _, c := range choices {
			choice, _ := c.(assemble.Piece)
			delta, _ := choice["delta"].(assemble.Piece)
			assemble.Add(message, delta)
		}
	}
	return nil, errors.New("read stream: no [DONE]")
}

// sameAnswer checks that the text and the tool calls of an answer arrived unchanged.
func sameAnswer(got, want json.RawMessage) error {
	if !slices.Equal(essence(got), essence(want)) {
		return fmt.Errorf("answer was changed: got %.200s, want %.200s", got, want)
	}
	return nil
}

// essence returns a message's text, and the id, name and arguments of each call.
func essence(raw json.RawMessage) []string {
	m := readMessage(raw)
	all := []string{m.Content}
	for _, c := range m.ToolCalls {
		all = append(all, c.ID, c.Function.Name, c.Function.Arguments)
	}
	return all
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

// withReasoning returns the recorded answer with the sealed reasoning of the answer received, as a client sends it back.
func withReasoning(recorded, got json.RawMessage) (json.RawMessage, error) {
	var received, m map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(got, &received), json.Unmarshal(recorded, &m)); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	sealed := false
	for _, key := range []string{"thinking_blocks", "reasoning_details"} {
		if reasoning, ok := received[key]; ok {
			m[key] = reasoning
			sealed = true
		}
	}
	if calls := readMessage(got).ToolCalls; len(calls) > 0 && calls[0].Extra != nil {
		var all []map[string]json.RawMessage
		if err := json.Unmarshal(m["tool_calls"], &all); err != nil {
			return nil, fmt.Errorf("read recorded calls: %w", err)
		}
		all[0]["extra_content"] = calls[0].Extra
		m["tool_calls"] = marshal(all)
		sealed = true
	}
	if !sealed {
		return recorded, nil
	}
	return marshal(m), nil
}

// marshal encodes a value, leaving the raw messages in it unchanged. It returns nil if one of them is not JSON.
func marshal(v any) json.RawMessage { return assemble.Encode(v) }
