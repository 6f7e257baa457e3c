package messages

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
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

// Tee begins to read an answer. Of a stream, Ended is true once message_stop or an error event has passed.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	if !streamed {
		a := &answer{}
		return &split.Whole{Read: a.read, Give: a.give, Most: mostAnswer}
	}
	t := &streamTee{}
	t.events = split.Events{Take: t.take, Most: mostEvent}
	return t
}

// reply is what is known of an answer, and of an event of a stream.
type reply struct {
	kind, message, content, stop, usage rawjson.Value
	index, block, delta                 rawjson.Value // of an event
}

// Slot gives the place of a known key.
func (r *reply) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &r.kind
	case "message":
		return &r.message
	case "content":
		return &r.content
	case "stop_reason":
		return &r.stop
	case "usage":
		return &r.usage
	case "index":
		return &r.index
	case "content_block":
		return &r.block
	case "delta":
		return &r.delta
	}
	return nil
}

// replyOf reads an object; what is none says nothing.
func replyOf(v rawjson.Value) (r reply) {
	if v.Kind == rawjson.Object {
		split.Fill(&r, v.Raw)
	}
	return r
}

// piece is what is known of a block that comes in an answer, or of a part of one.
type piece struct {
	block
	partial, stop rawjson.Value
}

// Slot gives the place of a known key.
func (p *piece) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "partial_json":
		return &p.partial
	case "stop_reason":
		return &p.stop
	}
	return p.block.Slot(name)
}

func pieceOf(v rawjson.Value) (p piece) {
	if v.Kind == rawjson.Object {
		split.Fill(&p, v.Raw)
	}
	return p
}

// usage is a usage report. Input counts neither what was read from the cache nor what was written to it.
type usage struct{ input, read, written, creation, output rawjson.Value }

// Slot gives the place of a known key.
func (u *usage) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "input_tokens":
		return &u.input
	case "cache_read_input_tokens":
		return &u.read
	case "cache_creation_input_tokens":
		return &u.written
	case "cache_creation":
		return &u.creation
	case "output_tokens":
		return &u.output
	}
	return nil
}

// lifetimes are the tokens that were written to the cache, by how long they stay there.
type lifetimes struct{ minutes, hour rawjson.Value }

// Slot gives the place of a known key.
func (l *lifetimes) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "ephemeral_5m_input_tokens":
		return &l.minutes
	case "ephemeral_1h_input_tokens":
		return &l.hour
	}
	return nil
}

// answer gathers what events, or a whole body, tell.
type answer struct {
	text                     bounded
	calls                    []session.Call
	index                    []int // the block of each call
	input                    []bounded
	compacted                []string
	finish                   string
	metered                  bool
	in, cached, written, out int // tokens
	long                     int // of written, those that are kept for an hour
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
	a.compact(p)
	switch {
	case p.kind.Is("text"):
		a.text.add(p.text.Text())
	case p.kind.Is("tool_use"):
		if len(a.calls) == mostCalls {
			return
		}
		a.calls = append(a.calls, session.Call{ID: split.Cut(p.id.Text()), Name: split.Cut(p.name.Text())})
		a.index, a.input = append(a.index, index), append(a.input, bounded{})
		if text := string(p.input.Raw); text != "" && text != "{}" {
			a.input[len(a.input)-1].add(text)
		}
	}
}

func (a *answer) compact(p *piece) {
	if mark := p.mark(); mark != "" {
		a.compacted = append(a.compacted, mark)
	}
}

func (a *answer) more(index int, p *piece) {
	a.compact(p)
	a.text.add(p.text.Text())
	for i := range a.index {
		if a.index[i] == index {
			a.input[i].add(p.partial.Text())
		}
	}
}

// meter takes a report. A stream begins with one, and ends with one that may repeat only what has changed.
func (a *answer) meter(report rawjson.Value) {
	if report.Kind != rawjson.Object {
		return
	}
	var u usage
	split.Fill(&u, report.Raw)
	a.metered = true
	a.in, a.cached = max(a.in, split.Integer(u.input)), max(a.cached, split.Integer(u.read))
	a.written, a.out = max(a.written, split.Integer(u.written)), max(a.out, split.Integer(u.output))
	if u.creation.Kind == rawjson.Object {
		var l lifetimes
		split.Fill(&l, u.creation.Raw)
		a.long = max(a.long, split.Integer(l.hour))
		a.written = max(a.written, split.Integer(l.minutes)+a.long)
	}
}

func (a *answer) stop(reason rawjson.Value) {
	if text := reason.Text(); text != "" {
		a.finish = split.Cut(text)
	}
}

func (a *answer) give() dialect.Answer {
	out := dialect.Answer{Text: a.text.text.String(), Finish: a.finish, Compactions: slices.Clone(a.compacted)}
	if a.metered {
		out.Usage = &session.Usage{
			Input: a.in + a.cached + a.written, Cached: a.cached, Output: a.out, Written: a.written, WrittenLong: a.long,
		}
	}
	for i, c := range a.calls {
		if c.Arguments = a.input[i].text.String(); c.Arguments == "" && !a.input[i].lost {
			c.Arguments = "{}"
		}
		out.Calls = append(out.Calls, c)
	}
	return out
}

// read takes a whole answer.
func (a *answer) read(body []byte) {
	if rawjson.Valid(body, 0) != nil {
		return
	}
	r, n := replyOf(rawjson.ValueOf(body)), 0
	for element := range rawjson.Elements(r.content.Raw) {
		p := pieceOf(element)
		a.begin(n, &p)
		n++
	}
	a.stop(r.stop)
	a.meter(r.usage)
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
	if rawjson.Valid(data, 0) != nil {
		return false
	}
	e := replyOf(rawjson.ValueOf(data))
	switch e.kind.Text() {
	case "message_start":
		t.answer.meter(replyOf(e.message).usage)
	case "content_block_start":
		p := pieceOf(e.block)
		t.answer.begin(split.Integer(e.index), &p)
	case "content_block_delta":
		p := pieceOf(e.delta)
		t.answer.more(split.Integer(e.index), &p)
	case "message_delta":
		t.answer.stop(pieceOf(e.delta).stop)
		t.answer.meter(e.usage)
	case "message_stop", "error":
		t.ended = true
	}
	return true
}
