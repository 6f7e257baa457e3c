package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// anthropic is the Messages API. The translation keeps what a judge looks at: who speaks, texts, calls, results, sealed reasoning. A
// result and the user message behind it share one message, as agents send them.
type anthropic struct{}

// turn is a message of Anthropic's.
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

func (anthropic) Path() string { return messages.Path }

func (a anthropic) Body(p *player, history []json.RawMessage) ([]byte, error) {
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
	for _, m := range sound(history) {
		switch {
		case leads(m.Role) && len(turns) == 0:
			system += m.Content + "\n"
		case m.Role == "assistant":
			add("assistant", a.said(m)...)
		case m.Role == "tool":
			add("user", block{Type: "tool_result", Result: m.Result, Content: marshal(m.Content)})
		default:
			add("user", block{Type: "text", Text: orEmpty(m.Content)})
		}
	}
	if len(turns) == 0 || turns[0].Role != "user" { // a run that its agent began
		turns = append([]turn{{"user", []block{{Type: "text", Text: "(begin)"}}}}, turns...)
	}
	return system, turns
}

// said are the blocks of an assistant message.
func (anthropic) said(m spoken) []block {
	blocks := append([]block(nil), m.Blocks...)
	if strings.TrimSpace(m.Content) != "" || len(m.ToolCalls) == 0 {
		blocks = append(blocks, block{Type: "text", Text: orEmpty(m.Content)})
	}
	for _, c := range m.ToolCalls {
		blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: inputOf(c.Function.Arguments)})
	}
	return blocks
}

// inputOf is the input for a call's arguments, as the fake upstream translates them.
func inputOf(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return marshal(json.RawMessage(arguments))
	}
	return marshal(map[string]string{"arguments": arguments})
}

// back translates turns.
func (anthropic) back(system string, turns []turn) (out []json.RawMessage) {
	add := func(m spoken) { out = append(out, marshal(m)) }
	if system != "" {
		add(spoken{Role: "system", Content: system})
	}
	for _, t := range turns {
		if t.Role == "assistant" {
			add(t.said())
			continue
		}
		for i, b := range t.Content {
			switch {
			case b.Type == "tool_result":
				add(spoken{Role: "tool", Content: textOf(b.Content), Result: b.Result})
			case i > 0 && t.Content[i-1].Type == "text": // it is in the message already
			default:
				add(spoken{Role: "user", Content: texts(t.Content[i:])})
			}
		}
	}
	return out
}

// texts joins those at the beginning of blocks.
func texts(blocks []block) string {
	var all []string
	for _, b := range blocks {
		if b.Type != "text" {
			break
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

func (t turn) said() spoken {
	m := spoken{Role: "assistant"}
	for _, b := range t.Content {
		switch b.Type {
		case "thinking":
			m.Blocks = append(m.Blocks, b)
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, callOf(b.ID, b.Name, string(marshal(b.Input))))
		default:
			m.Content += b.Text
		}
	}
	if len(m.ToolCalls) == 0 {
		m.Content = orEmpty(m.Content)
	}
	return m
}

func (a anthropic) Recorded(history []json.RawMessage) []json.RawMessage {
	if len(history) == 1 && role(history[0]) == "assistant" {
		return []json.RawMessage{marshal(turn{"assistant", a.said(read(history[0]))}.said())}
	}
	system, turns := a.turns(history)
	return a.back(system, turns)
}

func (a anthropic) Forwarded(r fakeupstream.Request) []json.RawMessage {
	var body struct {
		System   string
		Thinking struct {
			Binding json.RawMessage `json:"block_binding"`
		}
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(r.Body, &body) // it was judged by the server
	var turns []turn
	for _, m := range body.Messages {
		t := turn{Role: m.Role}
		if json.Unmarshal(m.Content, &t.Content) != nil {
			t.Content = []block{{Type: "text", Text: textOf(m.Content)}}
		}
		turns = append(turns, t)
	}
	if body.Thinking.Binding != nil {
		dropThinking(turns)
	}
	return a.back(body.System, turns)
}

// dropThinking leaves out the newest answer's thinking, which upstream is asked to drop where it is bound to another history.
func dropThinking(turns []turn) {
	for i := len(turns) - 1; i >= 0; i-- {
		if t := &turns[i]; t.Role == "assistant" {
			t.Content = slices.DeleteFunc(t.Content, func(b block) bool { return b.Type == "thinking" })
			return
		}
	}
}

// Answer reads an answer as it came.
func (anthropic) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	t := turn{Role: "assistant"}
	if streamed {
		if err := t.assemble(body); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(body, &t); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return marshal(t.said()), nil
}

// assemble puts a streamed answer together.
func (t *turn) assemble(stream []byte) error {
	var inputs []string
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
			t.Content, inputs = append(t.Content, e.Block), append(inputs, "")
		case "content_block_delta":
			b := &t.Content[e.Index]
			b.Text, b.Thinking, b.Signature = b.Text+e.Delta.Text, b.Thinking+e.Delta.Thinking, b.Signature+e.Delta.Signature
			inputs[e.Index] += e.Delta.Input
		case "message_stop":
			for i, input := range inputs {
				if t.Content[i].Type == "tool_use" {
					t.Content[i].Input = json.RawMessage(input)
				}
			}
			return nil
		}
	}
	return errors.New("read stream: no message_stop")
}
