package replay

import (
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// protocol is the wire protocol that a run is played in. Runs are kept as Chat Completions, and judged as such: what another
// protocol carries is translated back.
type protocol interface {
	Dialect() dialect.Dialect
	// Path is where requests go, below the base URL.
	Path() string
	// Body is the request for a history.
	Body(p *player, messages []json.RawMessage) ([]byte, error)
	// Answer reads the assistant message that came back.
	Answer(body []byte, streamed bool) (json.RawMessage, error)
	// Recorded is a message as it arrives when it is sent in this protocol.
	Recorded(messages []json.RawMessage) []json.RawMessage
	// Forwarded is what reached upstream.
	Forwarded(r fakeupstream.Request) []json.RawMessage
}

// protocols are those that a run can be played in, by name.
func protocols(name string) (protocol, bool) {
	switch name {
	case "", "chat":
		return completions{}, true
	case "messages":
		return anthropic{}, true
	case "responses":
		return items{}, true
	}
	return nil, false
}

// completions is Chat Completions.
type completions struct{}

func (completions) Dialect() dialect.Dialect { return chat.New(chat.Options{}) }

func (completions) Path() string { return chat.Path }

func (completions) Body(p *player, messages []json.RawMessage) ([]byte, error) {
	body := map[string]any{"messages": messages}
	if p.o.Stream {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	return p.body(body)
}

// body is a request with what all protocols have.
func (p *player) body(body map[string]any) ([]byte, error) {
	body["model"] = p.o.Model
	if len(p.run.Tools) > 0 {
		body["tools"] = p.run.Tools
	}
	if p.o.Habits.Manual {
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 1024}
	}
	if p.o.Stream {
		body["stream"] = true
	}
	return encode(body)
}

func (completions) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	if streamed {
		return put(body)
	}
	return message(body)
}

func (completions) Recorded(messages []json.RawMessage) []json.RawMessage { return messages }

func (completions) Forwarded(r fakeupstream.Request) []json.RawMessage { return r.Messages }
