// Package frontier plays recorded runs under condensers, in this process, and says for each what it saves and what it loses: the price of
// the prompts under a provider's automatic prefix cache, and the share of what actions name that nothing forwarded shows.
package frontier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/missing"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
}

// Run is a recorded run, read once for all condensers. It may be used by several goroutines.
type Run struct {
	Name     string
	fixed    int // tokens of the system prompt's remainder and the tools
	messages []session.Message
	contents map[*byte]session.Content // by where a message's bytes begin
	tokens   []int                     // of messages, as a provider bills them: a quarter of their bytes
	terms    []map[string]bool         // of messages
	steps    []step
	dialect  *chat.Dialect
	counter  Counter
}

// step is a call of the model.
type step struct {
	at     int            // number of messages before the answer
	named  map[string]int // what the answer's calls name that a message before has: the newest such message
	answer int            // tokens of the answer
}

// NewRun reads a run. Its system prompt and tools have at least the given number of tokens.
func NewRun(recorded replay.Run, fixed int, counter Counter) (*Run, error) {
	all := recorded.Messages
	if len(recorded.Final) > 0 && string(recorded.Final) != "null" {
		all = append(all[:len(all):len(all)], recorded.Final)
	}
	var body bytes.Buffer
	body.WriteString(`{"messages":[`)
	for i, m := range all {
		if i > 0 {
			body.WriteByte(',')
		}
		if err := json.Compact(&body, m); err != nil {
			return nil, fmt.Errorf("read run %s: %w", recorded.Name, err)
		}
	}
	body.WriteString("]}")
	d := chat.New(chat.Options{})
	split, err := d.Split("", body.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", recorded.Name, err)
	}
	r := &Run{Name: recorded.Name, fixed: fixed, messages: split.Messages, contents: map[*byte]session.Content{}, dialect: d, counter: counter}
	newest := map[string]int{}
	leading := true
	for i, m := range split.Messages {
		c, err := d.Read(m.Raw)
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", recorded.Name, err)
		}
		r.contents[&m.Raw[0]] = c
		r.tokens = append(r.tokens, len(m.Raw)/bytesPerToken)
		if leading = leading && m.Kind == session.System; leading {
			r.fixed -= len(m.Raw) / bytesPerToken
		}
		if m.Kind.ByModel() && i > 0 {
			s := step{at: i, named: map[string]int{}, answer: len(m.Raw) / bytesPerToken}
			for _, call := range c.Calls {
				for _, t := range missing.Names(call.Arguments) {
					if at, known := newest[t]; known {
						s.named[t] = at
					}
				}
			}
			r.steps = append(r.steps, s)
		}
		own := map[string]bool{}
		for _, t := range missing.Names(string(m.Raw)) {
			own[t], newest[t] = true, i
		}
		r.terms = append(r.terms, own)
	}
	r.fixed = max(r.fixed, 0)
	return r, nil
}

// bytesPerToken is the size of a token, as the provider counts.
const bytesPerToken = 4

// Read decodes a message, those of the run from memory.
func (r *Run) Read(raw []byte) (session.Content, error) {
	if len(raw) == 0 {
		return session.Content{}, errors.New("read message: empty")
	}
	if c, ok := r.contents[&raw[0]]; ok {
		return c, nil
	}
	return r.dialect.Read(raw)
}

// Rewrite implements condense.Codec.
func (r *Run) Rewrite(raw []byte, text string) ([]byte, error) { return r.dialect.Rewrite(raw, text) }

// raw returns the bytes that go upstream for an item.
func (r *Run) raw(item *session.Item) []byte {
	if item.Index < 0 {
		return r.dialect.Note(item.Summary)
	}
	return item.Raw
}

// summaryOverhead is the number of tokens of a message without its text.
const summaryOverhead = 4

// measure counts the tokens of items as the proxy does.
func (r *Run) measure(items []session.Item) []int {
	out := make([]int, len(items))
	for i := range items {
		if items[i].Index < 0 {
			out[i] = r.counter.Count(items[i].Summary) + summaryOverhead
		} else {
			out[i] = len(items[i].Raw) / bytesPerToken
		}
	}
	return out
}
