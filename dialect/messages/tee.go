package messages

import (
	"encoding/json"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// What a tee keeps of an answer, in bytes: its text, and again the arguments of its calls; one event of a stream; an answer that
// is not streamed.
const (
	mostText   = 256 << 10
	mostEvent  = 1 << 20
	mostAnswer = 4 << 20
	mostCalls  = 256
)

// Tee begins to read an answer. Of a stream, Ended is true once message_stop or an error event has passed; of a body, once its
// outermost bracket has closed.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	if !streamed {
		return &wholeTee{}
	}
	t := &streamTee{}
	t.events = split.Events{Take: t.take, Most: mostEvent}
	return t
}

// reply is what is known of an answer, and of an event of a stream.
type reply struct {
	Type    string  `json:"type"`
	Message *reply  `json:"message"` // of message_start
	Content []piece `json:"content"`
	Stop    string  `json:"stop_reason"`
	Usage   *usage  `json:"usage"`
	Index   int     `json:"index"`         // of a block
	Block   *piece  `json:"content_block"` // of content_block_start
	Delta   *delta  `json:"delta"`
}

type piece struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type delta struct {
	Text  string `json:"text"`
	Input string `json:"partial_json"`
	Stop  string `json:"stop_reason"`
}

// usage is a usage report. Input counts neither what was read from the cache nor what was written to it.
type usage struct {
	Input   int `json:"input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Output  int `json:"output_tokens"`
}

// answer gathers what events, or a whole body, tell.
type answer struct {
	text   bounded
	calls  []session.Call
	index  []int // the block of each call
	input  []bounded
	finish string
	usage  *usage
}

// bounded is text that is given up when it grows too long.
type bounded struct {
	text strings.Builder
	lost bool
}

func (b *bounded) add(text string) {
	if b.lost = b.lost || b.text.Len()+len(text) > mostText; b.lost {
		b.text.Reset()
		return
	}
	b.text.WriteString(text)
}

func (a *answer) begin(index int, p *piece) {
	switch p.Type {
	case "text":
		a.text.add(p.Text)
	case "tool_use":
		if len(a.calls) == mostCalls {
			return
		}
		a.calls = append(a.calls, session.Call{ID: split.Cut(p.ID), Name: split.Cut(p.Name)})
		a.index, a.input = append(a.index, index), append(a.input, bounded{})
		if text := string(p.Input); text != "" && text != "{}" {
			a.input[len(a.input)-1].add(text)
		}
	}
}

func (a *answer) more(index int, d *delta) {
	a.text.add(d.Text)
	if d.Input == "" {
		return
	}
	for i := range a.index {
		if a.index[i] == index {
			a.input[i].add(d.Input)
		}
	}
}

// meter takes a report. A stream begins with one, and ends with one that may repeat only what has changed.
func (a *answer) meter(u *usage) {
	if u == nil {
		return
	}
	if a.usage == nil {
		a.usage = &usage{}
	}
	a.usage.Input, a.usage.Read = max(a.usage.Input, u.Input), max(a.usage.Read, u.Read)
	a.usage.Written, a.usage.Output = max(a.usage.Written, u.Written), max(a.usage.Output, u.Output)
}

func (a *answer) stop(reason string) {
	if reason != "" {
		a.finish = split.Cut(reason)
	}
}

func (a *answer) give() dialect.Answer {
	out := dialect.Answer{Text: a.text.text.String(), Finish: a.finish}
	if u := a.usage; u != nil {
		out.Usage = &session.Usage{Input: u.Input + u.Read + u.Written, Cached: u.Read, Output: u.Output}
	}
	for i, c := range a.calls {
		if c.Arguments = a.input[i].text.String(); c.Arguments == "" && !a.input[i].lost {
			c.Arguments = "{}"
		}
		out.Calls = append(out.Calls, c)
	}
	return out
}

type streamTee struct {
	events split.Events
	answer answer
	ended  bool
}

// Write takes the next bytes.
func (t *streamTee) Write(p []byte) { t.events.Write(p) }

// Ended reports whether the last event has passed.
func (t *streamTee) Ended() bool { return t.ended }

// Answer is what was learnt so far.
func (t *streamTee) Answer() dialect.Answer { return t.answer.give() }

func (t *streamTee) take(data []byte) bool {
	var e reply
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			t.answer.meter(e.Message.Usage)
		}
	case "content_block_start":
		if e.Block != nil {
			t.answer.begin(e.Index, e.Block)
		}
	case "content_block_delta":
		if e.Delta != nil {
			t.answer.more(e.Index, e.Delta)
		}
	case "message_delta":
		if e.Delta != nil {
			t.answer.stop(e.Delta.Stop)
		}
		t.answer.meter(e.Usage)
	case "message_stop", "error":
		t.ended = true
	}
	return true
}

type wholeTee struct {
	body []byte
	end  split.End
	long bool
	read bool
	answer
}

// Write takes the next bytes.
func (t *wholeTee) Write(p []byte) {
	p = p[:t.end.Write(p)]
	if t.long = t.long || len(t.body)+len(p) > mostAnswer; t.long {
		t.body = nil
		return
	}
	t.body = append(t.body, p...)
}

// Ended reports whether the body has come to its end.
func (t *wholeTee) Ended() bool { return t.end.Closed }

// Answer is what was learnt so far.
func (t *wholeTee) Answer() dialect.Answer {
	if !t.read && !t.long && t.end.Closed {
		t.read = true
		var r reply
		if json.Unmarshal(t.body, &r) == nil {
			for i := range r.Content {
				t.begin(i, &r.Content[i])
			}
			t.stop(r.Stop)
			t.meter(r.Usage)
		}
		t.body = nil
	}
	return t.give()
}
