package summariser

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The version of the Messages API, for calls whose headers have none from a client.
const (
	versionHeader    = "Anthropic-Version"
	anthropicVersion = "2023-06-01"
)

// object is a JSON object of a request's body.
type object = map[string]any

// userMessage returns the events and the question as one user message, with parts of the given type.
func userMessage(r condense.Request, part string) object {
	var parts []object
	for _, text := range append(slices.Clip(r.Events), r.User) {
		if strings.TrimSpace(text) != "" {
			parts = append(parts, object{"type": part, "text": text})
		}
	}
	return object{"role": "user", "content": parts}
}

// described adds a schema's name and description to an object.
func described(o object, f *condense.Schema) object {
	o["name"] = f.Name
	if f.Description != "" {
		o["description"] = f.Description
	}
	return o
}

// request puts all events into one user message, as in Chat Completions. A required format of the text becomes the schema of a tool's
// arguments, which all models support.
func (m *message) request(c Caller, r condense.Request, _ lacks) any {
	out := object{"model": r.Model, "max_tokens": r.MaxOutput, "stream": true, "messages": []object{userMessage(r, "text")}}
	if r.System != "" {
		out["system"] = r.System
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if f := cmp.Or(r.Function, r.Format); f != nil {
		out["tools"] = []object{described(object{"input_schema": json.RawMessage(f.JSON)}, f)}
		out["tool_choice"] = object{"type": "tool", "name": f.Name}
	}
	return out
}

// message is an answer of the Messages API. https://docs.claude.com/en/api/messages
type message struct {
	Content    []block        `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      messagesUsage  `json:"usage"`
	Error      *messagesError `json:"error"`
}

// messagesUsage counts tokens. Input excludes those read from the cache or written to it.
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
		Finish: condense.FinishReason(m.StopReason),
		Usage:  session.Usage{Input: u.Input + u.Read + u.Written, Cached: u.Read, Output: u.Output, Written: u.Written},
	}
	var texts []string
	for _, b := range m.Content {
		switch {
		case b.Type == "text":
			texts = append(texts, b.Text)
		case strings.HasSuffix(b.Type, "_tool_use"):
			out.Finish = "tool_calls" // the provider ran the tool
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

// block is a content block.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (m *message) complete() bool { return m.StopReason != "" }

// messageEvent is an event of a stream.
type messageEvent struct {
	Type    string         `json:"type"`
	Message message        `json:"message"`
	Block   block          `json:"content_block"`
	Usage   messagesUsage  `json:"usage"`
	Error   *messagesError `json:"error"`
	Delta   struct {
		Text       string `json:"text"`
		Input      string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
}

func (m *message) readEvent(data []byte) (last bool, err error) {
	var e messageEvent
	switch {
	case json.Unmarshal(data, &e) != nil:
		return false, errUnreadable
	case e.Error != nil:
		return false, &refused{code: e.Error.Type}
	case e.Type == "message_stop":
		return true, nil
	}
	m.add(&e)
	return false, nil
}

func (m *message) readBody(body []byte) error {
	if json.Unmarshal(body, m) != nil {
		return errUnreadable
	}
	if m.Error != nil {
		return &refused{code: m.Error.Type}
	}
	return nil
}

// add adds an event. Blocks arrive one after another.
func (m *message) add(e *messageEvent) {
	m.Usage = m.Usage.merge(e.Usage).merge(e.Message.Usage)
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

// merge merges two reports of a stream: the last one may have only the numbers that changed.
func (u messagesUsage) merge(v messagesUsage) messagesUsage {
	return messagesUsage{max(u.Input, v.Input), max(u.Read, v.Read), max(u.Written, v.Written), max(u.Output, v.Output)}
}
