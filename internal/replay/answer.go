package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

type delta struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		Index int
		assembledTool
	} `json:"tool_calls"`
	reasoning
}

// reasoning is the members of a message that carry sealed reasoning.
type reasoning struct {
	Blocks  json.RawMessage `json:"thinking_blocks,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
}

type assembled struct {
	Role      string          `json:"role"`
	Content   *string         `json:"content"`
	ToolCalls []assembledTool `json:"tool_calls,omitempty"`
	reasoning
}

type assembledTool struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// assemble puts a streamed answer together again, as a client does.
func assemble(stream []byte) (json.RawMessage, error) {
	var out assembled
	done := false
	for event := range bytes.SplitSeq(bytes.ReplaceAll(stream, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(event), []byte("data: "))
		switch {
		case !ok:
			continue
		case string(data) == "[DONE]":
			done = true
			continue
		}
		var chunk struct{ Choices []struct{ Delta delta } }
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, fmt.Errorf("read stream: %w", err)
		}
		for _, c := range chunk.Choices {
			out.add(c.Delta)
		}
	}
	if !done {
		return nil, errors.New("read stream: no [DONE]")
	}
	return json.Marshal(out)
}

func (a *assembled) add(d delta) {
	if d.Role != "" {
		a.Role = d.Role
	}
	if len(d.Content) > 0 && string(d.Content) != "null" {
		text := textOf(d.Content)
		if a.Content != nil {
			text = *a.Content + text
		}
		a.Content = &text
	}
	if d.Blocks != nil || d.Details != nil {
		a.reasoning = d.reasoning
	}
	for _, c := range d.ToolCalls {
		for len(a.ToolCalls) <= c.Index {
			a.ToolCalls = append(a.ToolCalls, assembledTool{Type: "function"})
		}
		t := &a.ToolCalls[c.Index]
		t.ID += c.ID
		t.Function.Name += c.Function.Name
		t.Function.Arguments += c.Function.Arguments
		if c.Extra != nil {
			t.Extra = c.Extra
		}
	}
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
		ToolCalls []assembledTool `json:"tool_calls"`
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
		ToolCalls []assembledTool `json:"tool_calls"`
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
