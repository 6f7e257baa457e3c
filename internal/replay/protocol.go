package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// protocol is the wire protocol in which a run is played. Runs are stored and judged as Chat Completions: toChat translates the bodies
// of other protocols back.
type protocol interface {
	Dialect() dialect.Dialect
	// Path returns the path of requests below the base URL.
	Path() string
	// Body returns the request for a history.
	Body(p *player, messages []json.RawMessage) ([]byte, error)
	// Answer reads the assistant message of an answer.
	Answer(body []byte, streamed bool) (json.RawMessage, error)
}

// toChat translates the messages of a body to Chat Completions. It represents sealed reasoning by a hash of the message.
func toChat(d dialect.Dialect, body []byte) ([]json.RawMessage, error) {
	r, err := d.Split(body)
	if err != nil {
		return nil, fmt.Errorf("split a body: %w", err)
	}
	dropped := -1 // index of the newest answer, if upstream is to drop its reasoning where that is bound to another history
	if bytes.Contains(r.Outside(), []byte(`"block_binding":`)) {
		dropped = len(r.Messages) - 1
		for dropped >= 0 && r.Messages[dropped].Kind != session.Agent && r.Messages[dropped].Kind != session.Action {
			dropped--
		}
	}
	all := make([]json.RawMessage, len(r.Messages))
	for i := range r.Messages {
		c, err := d.Read(r.Messages[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", i, err)
		}
		m := chatMessage{Role: c.Role, Content: c.Text, Result: c.Result}
		for _, call := range c.Calls {
			m.ToolCalls = append(m.ToolCalls, callOf(call.ID, call.Name, call.Arguments))
		}
		if r.Messages[i].Sealed && i != dropped {
			m.Blocks = []block{{Type: "thinking", Signature: fmt.Sprintf("%x", sha256.Sum256(r.Messages[i].Raw))}}
		}
		all[i] = marshal(m)
	}
	return all, nil
}

// lastAnswer returns the newest assistant message of a body, translated to Chat Completions.
func lastAnswer(d dialect.Dialect, body []byte) (json.RawMessage, error) {
	all, err := toChat(d, body)
	if err != nil {
		return nil, err
	}
	for _, m := range slices.Backward(all) {
		if role(m) == "assistant" {
			return m, nil
		}
	}
	return nil, errors.New("read answer: no assistant message")
}

// protocols are the protocols in which a run can be played, by name.
var protocols = map[string]protocol{"": completions{}, "chat": completions{}, "messages": anthropic{}, "responses": items{}}

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

// body encodes a request, adding the fields that all protocols share.
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
		return readChunks(body)
	}
	return readCompletion(body)
}
