package logs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// documents reads lists of messages, alone or in an object, such as the body of a request or a run in our own form.
type documents struct {
	out    *output
	failed error // why the last document that cannot be read cannot
}

type document struct {
	ID           string
	Model        string
	Messages     []json.RawMessage
	Input        []json.RawMessage
	System       json.RawMessage
	Instructions json.RawMessage
	Tools        json.RawMessage
	Final        json.RawMessage `json:"final_response"`
}

func (d *documents) line(raw []byte) error {
	var doc document
	var err error
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &doc.Messages)
	} else {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		d.failed = fmt.Errorf("it has no list of messages: %w", err)
		d.out.broken++
		return nil
	}
	return d.out.document(&doc)
}

func (d *documents) end() error {
	if d.out.runs > 0 {
		return nil
	}
	return d.failed
}

// list reads a file with a message in each line.
type list struct {
	out *output
	doc document
}

func (l *list) line(raw []byte) error {
	l.doc.Messages = append(l.doc.Messages, bytes.Clone(raw))
	return nil
}

func (l *list) end() error { return l.out.document(&l.doc) }

// document hands over a list of messages as a run, in the protocol that its messages have.
func (o *output) document(d *document) error {
	var h *history
	switch protocolOf(d) {
	case replay.ProtocolResponses:
		h = d.responses()
	case replay.ProtocolMessages:
		h = d.anthropic()
	default:
		h = d.chat()
	}
	for i := range h.answers {
		h.answers[i].Model = d.Model
	}
	h.tools = d.Tools
	if string(h.tools) == "null" {
		h.tools = nil
	}
	name := o.name
	defer func() { o.name = name }()
	if d.ID != "" {
		o.name = d.ID
	}
	return o.emit(h)
}

// protocolOf returns the protocol that a list's messages have.
func protocolOf(d *document) replay.Protocol {
	if len(d.Input) > 0 || len(d.Instructions) > 0 {
		return replay.ProtocolResponses
	}
	if len(d.System) > 0 {
		return replay.ProtocolMessages
	}
	for _, raw := range d.Messages {
		var m struct {
			Type    string
			Content []struct{ Type string }
		}
		_ = json.Unmarshal(raw, &m) // content may be a text
		switch m.Type {
		case "function_call", "function_call_output", "reasoning", "custom_tool_call":
			return replay.ProtocolResponses
		}
		for _, block := range m.Content {
			switch block.Type {
			case "tool_use", "tool_result", "thinking", "redacted_thinking":
				return replay.ProtocolMessages
			case "input_text", "output_text":
				return replay.ProtocolResponses
			}
		}
	}
	return replay.ProtocolChat
}

// withFinal returns the messages and the answer to them.
func (d *document) withFinal() []json.RawMessage {
	if len(d.Final) > 0 && string(d.Final) != "null" {
		return append(d.Messages[:len(d.Messages):len(d.Messages)], d.Final)
	}
	return d.Messages
}

func (d *document) chat() *history {
	h := &history{protocol: replay.ProtocolChat, messages: d.withFinal()}
	for i, raw := range h.messages {
		if roleOf(raw) == "assistant" {
			h.answers = append(h.answers, answer{at: i})
		}
	}
	return h
}

func (d *document) anthropic() *history {
	h := &history{protocol: replay.ProtocolMessages}
	if blocks := blocksOf(d.System); len(blocks) > 0 {
		h.system = encode(blocks)
	}
	for _, raw := range d.withFinal() {
		var m struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(raw, &m) != nil || m.Role == "" {
			continue
		}
		if m.Role == "assistant" {
			h.answers = append(h.answers, answer{at: len(h.messages)})
		}
		h.messages = append(h.messages, anthropic(m.Role, blocksOf(m.Content)))
	}
	return h
}

func (d *document) responses() *history {
	var items []item
	for _, raw := range append(d.withFinal(), d.Input...) {
		if i, ok := itemOf(raw); ok {
			i.id = ""
			items = append(items, i)
		}
	}
	h := group(items, 0)
	h.system = d.Instructions
	return h
}

func roleOf(raw []byte) string {
	var m struct{ Role string }
	_ = json.Unmarshal(raw, &m) // what is not a message has no role
	return m.Role
}
