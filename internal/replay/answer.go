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

// same reports whether an answer arrived as it was given: text and tool calls.
func same(got, want json.RawMessage) error {
	if !slices.Equal(essence(got), essence(want)) {
		return fmt.Errorf("answer changed on its way: got %.200s, want %.200s", got, want)
	}
	return nil
}

// essence is a message's text, and what tells each of its calls.
func essence(raw json.RawMessage) []string {
	m := read(raw)
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

// sealedAs gives a recorded answer the sealed reasoning that came with it: what a client sends back.
func sealedAs(recorded, got json.RawMessage) (json.RawMessage, error) {
	var came, m map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(got, &came), json.Unmarshal(recorded, &m)); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	sealed := false
	for _, key := range []string{"thinking_blocks", "reasoning_details"} {
		if reasoning, is := came[key]; is {
			m[key], sealed = reasoning, true
		}
	}
	if calls := read(got).ToolCalls; len(calls) > 0 && calls[0].Extra != nil {
		var all []map[string]json.RawMessage
		if err := json.Unmarshal(m["tool_calls"], &all); err != nil {
			return nil, fmt.Errorf("read recorded calls: %w", err)
		}
		all[0]["extra_content"] = calls[0].Extra
		m["tool_calls"], sealed = marshal(all), true
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
