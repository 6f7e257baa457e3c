package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// anthropic is the Messages API. The translation keeps what the judge checks: roles, texts, calls, results and sealed reasoning. A
// result and the user message after it share one message, as agents send them.
type anthropic struct{}

// turn is a message of the Messages API.
type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Result    string          `json:"tool_use_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
}

func (anthropic) Dialect() dialect.Dialect { return messages.New(split.Options{}) }

func (anthropic) Path(*player) string { return messages.Path }

func (a anthropic) Body(p *player, history []json.RawMessage) []byte {
	system, turns := a.turns(history)
	body := map[string]any{"max_tokens": 1024, "messages": turns}
	if system != "" {
		body["system"] = system
	}
	return p.body(body)
}

// turns translates a history.
func (a anthropic) turns(history []json.RawMessage) (system string, turns []turn) {
	add := func(role string, blocks ...block) {
		if n := len(turns) - 1; n >= 0 && turns[n].Role == role && role == "user" {
			turns[n].Content = append(turns[n].Content, blocks...)
			return
		}
		turns = append(turns, turn{role, blocks})
	}
	for _, m := range normalise(history) {
		switch {
		case isSystem(m.Role) && len(turns) == 0:
			system += m.Content + "\n"
		case m.Role == "assistant":
			add("assistant", a.blocks(m)...)
		case m.Role == "tool":
			add("user", block{Type: "tool_result", Result: m.Result, Content: marshal(m.Content)})
		default:
			add("user", block{Type: "text", Text: orEmpty(m.Content)})
		}
	}
	if len(turns) == 0 || turns[0].Role != "user" { // the run begins with an assistant message
		turns = append([]turn{{"user", []block{{Type: "text", Text: "(begin)"}}}}, turns...)
	}
	return system, turns
}

// blocks returns the blocks of an assistant message.
func (anthropic) blocks(m chatMessage) []block {
	blocks := slices.Clone(m.Blocks)
	if strings.TrimSpace(m.Content) != "" || len(m.ToolCalls) == 0 {
		blocks = append(blocks, block{Type: "text", Text: orEmpty(m.Content)})
	}
	for _, c := range m.ToolCalls {
		blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: inputOf(c.Function.Arguments)})
	}
	return blocks
}

// inputOf translates a call's arguments to the input of a tool_use block, as the fake upstream does.
func inputOf(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return marshal(json.RawMessage(arguments))
	}
	return marshal(map[string]string{"arguments": arguments})
}

// Answer implements protocol.
func (a anthropic) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	t := turn{Role: "assistant"}
	if streamed {
		if err := t.assemble(body); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(body, &t); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	raw, err := lastAnswer(a.Dialect(), marshal(map[string]any{"model": "", "max_tokens": 1, "messages": []turn{t}}))
	if err != nil {
		return nil, err
	}
	m := readMessage(raw)
	m.Blocks = slices.DeleteFunc(t.Content, func(b block) bool { return b.Type != "thinking" })
	if len(m.ToolCalls) == 0 {
		m.Content = orEmpty(m.Content)
	}
	return marshal(m), nil
}

// assemble reads a streamed answer into t.
func (t *turn) assemble(stream []byte) error {
	for data := range eventsOf(stream) {
		var e struct {
			Type  string
			Index int
			Block block `json:"content_block"`
			Delta struct {
				Text, Thinking, Signature string
				Input                     string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("read stream: %w", err)
		}
		switch e.Type {
		case "content_block_start":
			e.Block.Input = nil // it follows in pieces
			t.Content = append(t.Content, e.Block)
		case "content_block_delta":
			b := &t.Content[e.Index]
			b.Text += e.Delta.Text
			b.Thinking += e.Delta.Thinking
			b.Signature += e.Delta.Signature
			b.Input = append(b.Input, e.Delta.Input...)
		case "message_stop":
			return nil
		}
	}
	return errors.New("read stream: no message_stop")
}
