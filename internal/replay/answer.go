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

// readCompletion returns the assistant message of an answer of Chat Completions that was not streamed.
func readCompletion(answer []byte) (json.RawMessage, error) {
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

func callOf(id, name, arguments string) toolCall {
	c := toolCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	return c
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
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "")
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
