package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// protocol is the wire protocol in which a run is played. Runs are stored as Chat Completions.
type protocol interface {
	Dialect() dialect.Dialect
	// Path returns the path of requests below the base URL.
	Path() string
	// Body returns the request for a history.
	Body(p *player, messages []json.RawMessage) []byte
	// Said returns the message by which Body repeats an answer with its sealed reasoning: the recorded answer with that of the one received.
	Said(recorded json.RawMessage, got []byte) json.RawMessage
}

// withoutDropped returns the messages that were forwarded. Reasoning that upstream dropped, by its signatures, does not count.
func withoutDropped(d dialect.Dialect, forwarded []session.Message, dropped []string) []json.RawMessage {
	all := make([]json.RawMessage, len(forwarded))
	for i, m := range forwarded {
		all[i] = m.Raw
		if slices.ContainsFunc(dropped, func(signature string) bool { return bytes.Contains(m.Raw, []byte(signature)) }) {
			if raw, err := d.StripReasoning(m.Raw); err == nil {
				all[i] = raw
			}
		}
	}
	return all
}

// lastAnswer returns the newest assistant message of a body.
func lastAnswer(d dialect.Dialect, body []byte) (c session.Content, err error) {
	r, err := d.Split(body)
	if err != nil {
		return c, fmt.Errorf("split an answer: %w", err)
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Kind.ByModel() {
			return d.Read(m.Raw)
		}
	}
	return c, errors.New("read answer: no assistant message")
}

// protocols are the protocols in which a run can be played, by name.
var protocols = map[string]protocol{"": completions{}, "chat": completions{}, "messages": anthropic{}, "responses": items{}}

// completions is Chat Completions.
type completions struct{}

func (completions) Dialect() dialect.Dialect { return chat.New(chat.Options{}) }

func (completions) Path() string { return chat.Path }

func (completions) Body(p *player, messages []json.RawMessage) []byte {
	body := map[string]any{"messages": messages}
	if p.o.Stream {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	return p.body(body)
}

// body encodes a request, adding the fields that all protocols share.
func (p *player) body(body map[string]any) []byte {
	body["model"] = p.o.Model
	if len(p.run.Tools) > 0 {
		body["tools"] = p.run.Tools
	}
	if p.o.Manual {
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 1024}
	}
	if p.o.Stream {
		body["stream"] = true
	}
	return marshal(body)
}

// Said implements protocol. The agent sends back what it received.
func (completions) Said(_ json.RawMessage, got []byte) json.RawMessage { return got }
