package judge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
)

// protocol is the wire protocol in which a run is played. Runs are stored and judged as Chat Completions: toChat translates the bodies
// of other protocols back.
type protocol interface {
	Dialect() dialect.Dialect
	// Path returns the path of requests below the base URL, with their query.
	Path(p *player) string
	// Body returns the request for a history.
	Body(p *player, messages []json.RawMessage) []byte
	// Answer reads the assistant message of an answer.
	Answer(body []byte, streamed bool) (json.RawMessage, error)
}

// toChat translates the messages of a body to Chat Completions. It represents sealed reasoning by a hash of the message. It leaves out reasoning
// that upstream dropped; dropped are the signatures of that.
func toChat(d dialect.Dialect, body []byte, dropped ...string) ([]json.RawMessage, error) {
	r, err := d.Split("", body)
	if err != nil {
		return nil, fmt.Errorf("split a body: %w", err)
	}
	all := make([]json.RawMessage, len(r.Messages))
	for i := range r.Messages {
		raw := r.Messages[i].Raw
		c, err := d.Read(raw)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", i, err)
		}
		m := chatMessage{Role: c.Role, Content: c.Text, Result: cmp.Or(r.Messages[i].Result, c.Result)}
		for _, call := range c.Calls {
			t := toolCall{ID: call.ID, Type: "function"}
			t.Function.Name, t.Function.Arguments = call.Name, call.Arguments
			m.ToolCalls = append(m.ToolCalls, t)
		}
		drop := slices.ContainsFunc(dropped, func(signature string) bool { return bytes.Contains(raw, []byte(signature)) })
		if r.Messages[i].Sealed && !drop {
			m.Blocks = []block{{Type: "thinking", Signature: fmt.Sprintf("%x", sha256.Sum256(raw))}}
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
		if readMessage(m).Role == "assistant" {
			return m, nil
		}
	}
	return nil, errors.New("read answer: no assistant message")
}

// protocols are the protocols in which a run can be played, by name.
var protocols = map[string]protocol{"": completions{}, "chat": completions{}, "messages": anthropic{}, "responses": items{}, "gemini": contents{}}

// completions is Chat Completions.
type completions struct{}

func (completions) Dialect() dialect.Dialect { return chat.New(chat.Options{}) }

func (completions) Path(*player) string { return chat.Path }

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
	if p.o.Habits.Manual {
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 1024}
	}
	if p.o.Stream {
		body["stream"] = true
	}
	return marshal(body)
}

func (completions) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	if streamed {
		return readChunks(body)
	}
	var a struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(a.Choices) != 1 {
		return nil, errors.New("read answer: not one choice")
	}
	return a.Choices[0].Message, nil
}
