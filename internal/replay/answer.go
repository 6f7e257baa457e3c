package replay

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

// message takes the assistant message out of a whole answer.
func message(answer []byte) (json.RawMessage, error) {
	var a struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(a.Choices) != 1 {
		return nil, errors.New("read answer: not one choice")
	}
	return a.Choices[0].Message, nil
}

// reasoning is the members of a message that carry sealed reasoning.
type reasoning struct {
	Blocks  json.RawMessage `json:"thinking_blocks,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
}

// toolCall is a call of a message of Chat Completions.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

func callOf(id, name, arguments string) toolCall {
	c := toolCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	return c
}

// eventsOf gives the data of a stream's events.
func eventsOf(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(stream) {
			if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok && !yield(data) {
				return
			}
		}
	}
}

// put puts a streamed answer of Chat Completions together again, as a client does.
func put(stream []byte) (json.RawMessage, error) {
	message := assemble.Piece{}
	for data := range eventsOf(stream) {
		if string(data) == "[DONE]" {
			return assemble.Encode(message), nil
		}
		chunk := assemble.Decode(data)
		if chunk == nil {
			return nil, fmt.Errorf("read stream: %.200s is no object", data)
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

// same reports whether an answer arrived as it was given: role, text and tool calls.
func same(got, want json.RawMessage) error {
	g, err := essence(got)
	if err != nil {
		return err
	}
	w, err := essence(want)
	if err != nil {
		return err
	}
	if !slices.Equal(g, w) {
		return fmt.Errorf("answer changed on its way: got %.200s, want %.200s", got, want)
	}
	return nil
}

// essence is a message's text, and what tells each of its calls.
func essence(raw json.RawMessage) ([]string, error) {
	var m struct {
		Content   json.RawMessage `json:"content"`
		ToolCalls []toolCall      `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	all := []string{textOf(m.Content)}
	for _, c := range m.ToolCalls {
		all = append(all, c.ID, c.Function.Name, c.Function.Arguments)
	}
	return all, nil
}

func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "")
}

// sealedAs gives a recorded answer the sealed reasoning that came with it: what a client sends back.
func sealedAs(recorded, got json.RawMessage) (json.RawMessage, error) {
	var with struct {
		ToolCalls []toolCall `json:"tool_calls"`
		reasoning
	}
	if err := json.Unmarshal(got, &with); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(recorded, &m); err != nil {
		return nil, fmt.Errorf("read recorded answer: %w", err)
	}
	sealed := with.Blocks != nil || with.Details != nil
	if with.Blocks != nil {
		m["thinking_blocks"] = with.Blocks
	}
	if with.Details != nil {
		m["reasoning_details"] = with.Details
	}
	if len(with.ToolCalls) > 0 && with.ToolCalls[0].Extra != nil {
		var calls []map[string]json.RawMessage
		if err := json.Unmarshal(m["tool_calls"], &calls); err != nil {
			return nil, fmt.Errorf("read recorded calls: %w", err)
		}
		calls[0]["extra_content"] = with.ToolCalls[0].Extra
		m["tool_calls"], sealed = marshal(calls), true
	}
	if !sealed {
		return recorded, nil
	}
	return marshal(m), nil
}

// marshal encodes what was decoded before.
func marshal(v any) json.RawMessage {
	raw, _ := encode(v) // raw JSON in maps
	return raw
}
