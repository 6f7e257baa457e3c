package retention

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Counter counts the tokens of texts and of messages.
type Counter interface {
	Count(text string) int
	Message(c session.Content) int
}

// run is a recorded run, read once for all strategies. It is used by one goroutine.
type run struct {
	name string
	*chat.Dialect
	counter  Counter
	messages []session.Message
	contents map[*byte]session.Content // by where a message's bytes begin
	texts    []string                  // of messages: what is searched for references
	lower    []string                  // the same in lower case
	named    map[string][]int          // messages that have a word, in any case
	tokens   []int

	statements [][]statement // of messages; empty for all but the agent's

	standIn *StandIn
	found   map[string][]int // messages in which a reference occurs
	counted map[string]int   // tokens of texts
}

// newRun decodes a run; its final answer becomes its last message.
func newRun(r replay.Run, counter Counter) (*run, error) {
	all := slices.Clone(r.Messages)
	if len(r.Final) > 0 && string(r.Final) != "null" {
		all = append(all, r.Final)
	}
	body := []byte(`{"messages":[`)
	for i, m := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, m...)
	}
	body = append(body, "]}"...)
	d := chat.New(chat.Options{})
	split, err := d.Split("", body)
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", r.Name, err)
	}
	out := &run{
		name: r.Name, Dialect: d, counter: counter, messages: split.Messages, contents: map[*byte]session.Content{},
		found: map[string][]int{}, named: map[string][]int{}, counted: map[string]int{},
	}
	out.standIn = NewStandIn(out.count)
	for i, m := range split.Messages {
		c, err := d.Read(m.Raw)
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", r.Name, err)
		}
		out.contents[&m.Raw[0]] = c
		out.texts = append(out.texts, textOf(c))
		out.lower = append(out.lower, strings.ToLower(out.texts[i]))
		out.tokens = append(out.tokens, counter.Message(c))
		out.statements = append(out.statements, nil)
		if m.Kind.ByModel() {
			out.statements[i] = statements(i, c.Text)
		}
	}
	return out, nil
}

// Read decodes a message, those of the run from memory.
func (r *run) Read(raw []byte) (session.Content, error) {
	if len(raw) == 0 {
		return session.Content{}, errors.New("read message: empty")
	}
	if c, ok := r.contents[&raw[0]]; ok {
		return c, nil
	}
	return r.Dialect.Read(raw)
}

// longText is how long a text may be, in bytes, to be counted and not estimated: only prompts are longer.
const longText = 512 << 10

// count is the tokens of a text.
func (r *run) count(text string) int {
	if len(text) > longText {
		return len(text) / 4
	}
	return r.remembered(text, func() int { return r.counter.Count(text) })
}

// message is the tokens of a message that is not as it was sent.
func (r *run) message(c session.Content) int {
	if len(c.Calls) > 0 {
		return r.counter.Message(c)
	}
	return r.remembered(c.Role+" says "+c.Text, func() int { return r.counter.Message(c) })
}

// remembered counts what was not counted before.
func (r *run) remembered(key string, count func() int) int {
	n, known := r.counted[key]
	if !known {
		n = count()
		r.counted[key] = n
	}
	return n
}

// where gives the messages in which a text occurs as a word of its own.
func (r *run) where(text string) []int {
	if in, known := r.found[text]; known {
		return in
	}
	var in []int
	for i := range r.texts {
		if recall.ContainsWord(r.texts[i], text) {
			in = append(in, i)
		}
	}
	r.found[text] = in
	return in
}

// textOf is what a message says: its text, and the strings and numbers in its calls' arguments.
func textOf(c session.Content) string {
	parts := []string{c.Text}
	for _, call := range c.Calls {
		parts = slices.AppendSeq(parts, excerpt.Values(call.Arguments))
	}
	return strings.Join(parts, "\n")
}
