package summariser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The version of the Messages API, for calls that have none from a client.
const (
	versionHeader    = "Anthropic-Version"
	anthropicVersion = "2023-06-01"
)

// messages makes a call in the Messages API. https://docs.claude.com/en/api/messages
func (c Caller) messages(ctx context.Context, r condense.Request) (condense.Reply, error) {
	body, err := bodyOf(r, func() any { return c.messagesRequest(r) })
	if err != nil {
		return condense.Reply{}, callError(ctx, err, r.Endpoint.APIKey)
	}
	var got message
	err = c.watched(ctx, r, true, func(ctx context.Context, w *wire) error {
		err := w.post(ctx, body, got.whole, got.take)
		if errors.Is(err, errEnded) && got.StopReason != "" {
			return nil
		}
		return err
	})
	if err != nil {
		return condense.Reply{}, callError(ctx, err, r.Endpoint.APIKey)
	}
	return got.reply(r), nil
}

type messagesRequest struct {
	Model       string      `json:"model"`
	MaxTokens   int         `json:"max_tokens"`
	Stream      bool        `json:"stream"`
	System      string      `json:"system,omitempty"`
	Messages    []userTurn  `json:"messages"`
	Tools       []tool      `json:"tools,omitempty"`
	ToolChoice  *toolChoice `json:"tool_choice,omitempty"`
	Temperature *float32    `json:"temperature,omitempty"`
}

type userTurn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// block is a content block, in a request or an answer.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

// messagesRequest has all events in one user message, as in Chat Completions. A form that the text must have is that of the
// arguments of a tool, which all of them know.
func (c Caller) messagesRequest(r condense.Request) messagesRequest {
	turn := userTurn{Role: "user"}
	for _, text := range append(slices.Clip(r.Events), r.User) {
		if strings.TrimSpace(text) != "" {
			turn.Content = append(turn.Content, block{Type: "text", Text: text})
		}
	}
	out := messagesRequest{
		Model: r.Model, MaxTokens: r.MaxOutput, Stream: true, System: r.System, Messages: []userTurn{turn}, Temperature: c.Temperature,
	}
	if f := cmp.Or(r.Function, r.Format); f != nil {
		out.Tools = []tool{{f.Name, f.Description, f.JSON}}
		out.ToolChoice = &toolChoice{"tool", f.Name}
	}
	return out
}

// message is an answer.
type message struct {
	Type       string         `json:"type"`
	Content    []block        `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      messagesUsage  `json:"usage"`
	Error      *messagesError `json:"error"`
}

// messagesUsage counts tokens. Input are those that were neither read from a cache nor written to one.
type messagesUsage struct {
	Input   int `json:"input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Output  int `json:"output_tokens"`
}

type messagesError struct {
	Type string `json:"type"`
}

func (m *message) reply(r condense.Request) condense.Reply {
	u := m.Usage
	out := condense.Reply{
		Finish: finish(m.StopReason), Usage: session.Usage{Input: u.Input + u.Read + u.Written, Cached: u.Read, Output: u.Output, Written: u.Written},
	}
	var texts []string
	for _, b := range m.Content {
		switch {
		case b.Type == "text":
			texts = append(texts, b.Text)
		case strings.HasSuffix(b.Type, "_tool_use"):
			out.Finish = "tool_calls" // the provider ran it
		case b.Type != "tool_use":
		case r.Function != nil && b.Name == r.Function.Name && out.Arguments == "":
			out.Arguments = string(b.Input)
		case r.Function == nil && r.Format != nil && b.Name == r.Format.Name:
			texts = []string{string(b.Input)}
		}
	}
	out.Text = strings.Join(texts, "\n")
	return out
}

// finish is what Chat Completions call a stop_reason.
func finish(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return reason
}

// messageEvent is an event of a stream.
type messageEvent struct {
	Type    string         `json:"type"`
	Message message        `json:"message"`
	Block   block          `json:"content_block"`
	Delta   messageDelta   `json:"delta"`
	Usage   messagesUsage  `json:"usage"`
	Error   *messagesError `json:"error"`
}

type messageDelta struct {
	Text       string `json:"text"`
	Input      string `json:"partial_json"`
	StopReason string `json:"stop_reason"`
}

// take adds what an event tells, and reports whether it was the last one.
func (m *message) take(data []byte) (ended bool, err error) {
	var e messageEvent
	switch {
	case json.Unmarshal(data, &e) != nil:
		return false, errUnreadable
	case e.Error != nil:
		return false, &refused{kind: e.Error.Type}
	case e.Type == "message_stop":
		return true, nil
	}
	m.add(&e)
	return false, nil
}

// whole takes an answer that was not streamed.
func (m *message) whole(body []byte) error {
	switch {
	case json.Unmarshal(body, m) != nil:
		return errUnreadable
	case m.Error != nil:
		return &refused{kind: m.Error.Type}
	}
	return nil
}

// add takes an event. Blocks come one after another.
func (m *message) add(e *messageEvent) {
	m.Usage = m.Usage.most(e.Usage).most(e.Message.Usage)
	m.StopReason = cmp.Or(e.Delta.StopReason, m.StopReason)
	if e.Type == "content_block_start" {
		if e.Block.Type == "tool_use" && string(e.Block.Input) == "{}" {
			e.Block.Input = nil
		}
		m.Content = append(m.Content, e.Block)
	}
	if len(m.Content) > 0 {
		last := &m.Content[len(m.Content)-1]
		last.Text += e.Delta.Text
		last.Input = append(last.Input, e.Delta.Input...)
	}
}

// most joins two reports: the last of a stream may repeat only what has changed.
func (u messagesUsage) most(v messagesUsage) messagesUsage {
	return messagesUsage{max(u.Input, v.Input), max(u.Read, v.Read), max(u.Written, v.Written), max(u.Output, v.Output)}
}
