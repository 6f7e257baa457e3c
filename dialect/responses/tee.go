package responses

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// What a tee keeps of an answer, in bytes: its text, and again the arguments of its calls; one event of a stream, of which the last has
// the whole answer; an answer that is not streamed.
const (
	mostText   = 256 << 10
	mostEvent  = 4 << 20
	mostAnswer = 4 << 20
	mostCalls  = 256
)

// Tee begins to read an answer. Of a stream, Ended is true once its last event has passed, or an error.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	a := &answer{}
	if !streamed {
		return &split.Whole{Read: a.read, Give: a.give, Most: mostAnswer}
	}
	t := &streamTee{answer: a}
	t.events = split.Events{Take: t.take, Most: mostEvent}
	return t
}

// reply is what is known of an answer, and of an event of a stream.
type reply struct{ kind, id, status, output, usage, incomplete, reason, item, response rawjson.Value }

// Slot gives the place of a known key.
func (r *reply) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &r.kind
	case "id":
		return &r.id
	case "status":
		return &r.status
	case "output":
		return &r.output
	case "usage":
		return &r.usage
	case "incomplete_details":
		return &r.incomplete
	case "reason":
		return &r.reason
	case "item":
		return &r.item
	case "response":
		return &r.response
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

// usage is a usage report, or the details of one. Cached tokens are part of the input.
type usage struct{ input, output, details, cached rawjson.Value }

// Slot gives the place of a known key.
func (u *usage) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "input_tokens":
		return &u.input
	case "output_tokens":
		return &u.output
	case "input_tokens_details":
		return &u.details
	case "cached_tokens":
		return &u.cached
	}
	return nil
}

// answer gathers what events, or a whole body, tell.
type answer struct {
	texts     []string
	calls     []session.Call
	compacted []string
	id        string
	said      []byte // its items, with commas between them
	text, arg int    // bytes of texts and arguments so far
	items     int
	finish    string
	usage     *session.Usage
}

func (a *answer) add(v rawjson.Value) {
	if v.Kind != rawjson.Object {
		return
	}
	if a.items++; a.items > 1 {
		a.said = append(a.said, ',')
	}
	if a.said = append(a.said, v.Raw...); len(a.said) > mostText {
		a.said = a.said[:mostText+1] // what comes after that is not kept
	}
	it := item{raw: v.Raw}
	split.Fill(&it, v.Raw)
	r := reading{}
	switch {
	case it.isMessage():
		r.content(it.content)
		text := strings.Join(r.texts, "\n")
		a.texts, a.text = append(a.texts, text), a.text+len(text)
	case it.class() == system:
		if mark := it.mark(); mark != "" {
			a.compacted = append(a.compacted, mark)
		}
	case it.calls().Kind == rawjson.String && len(a.calls) < mostCalls:
		c := it.called()
		if a.arg += len(c.Arguments); a.arg > mostText {
			c.Arguments = ""
		}
		a.calls = append(a.calls, session.Call{ID: split.Cut(c.ID), Name: split.Cut(c.Name), Arguments: c.Arguments})
	}
}

// end takes the response as it is at its end. Items that came one by one stand in it, too.
func (a *answer) end(r *reply) {
	if a.items == 0 {
		for element := range rawjson.Elements(r.output.Raw) {
			a.add(element)
		}
	}
	a.id = split.Cut(r.id.Text())
	reason := replyOf(r.incomplete).reason
	a.finish = split.Cut(split.FirstText(reason.Text(), r.status.Text()))
	a.meter(r.usage)
}

func (a *answer) meter(report rawjson.Value) {
	if report.Kind != rawjson.Object {
		return
	}
	var u, details usage
	split.Fill(&u, report.Raw)
	if u.input.Kind != rawjson.Number && u.output.Kind != rawjson.Number {
		return
	}
	if u.details.Kind == rawjson.Object {
		split.Fill(&details, u.details.Raw)
	}
	a.usage = &session.Usage{Input: split.Integer(u.input), Cached: split.Integer(details.cached), Output: split.Integer(u.output)}
	if a.usage.Cached > a.usage.Input { // some gateways leave the cached part out, as Anthropic does
		a.usage.Input += a.usage.Cached
	}
}

func (a *answer) give() dialect.Answer {
	out := dialect.Answer{ID: a.id, Calls: append([]session.Call(nil), a.calls...), Finish: a.finish, Compactions: slices.Clone(a.compacted)}
	if len(a.said) <= mostText {
		out.Said = bytes.Clone(a.said)
	}
	if a.text <= mostText {
		out.Text = strings.Join(a.texts, "\n")
	}
	if a.usage != nil {
		metered := *a.usage
		out.Usage = &metered
	}
	return out
}

// read takes a whole answer.
func (a *answer) read(body []byte) {
	if rawjson.Valid(body, 0) != nil {
		return
	}
	r := replyOf(rawjson.ValueOf(body))
	a.end(&r)
}

// Opening reports whether an event only tells that an answer is being made.
func (d *Dialect) Opening(event []byte) (is bool) {
	events := split.Events{Most: mostEvent, Take: func(data []byte) bool {
		if rawjson.Valid(data, 0) != nil {
			return false
		}
		switch replyOf(rawjson.ValueOf(data)).kind.Text() {
		case "response.created", "response.queued", "response.in_progress":
			is = true
		}
		return true
	}}
	events.Write(event)
	return is
}

type streamTee struct {
	events split.Events
	answer *answer
	ended  bool
}

// Write takes the next bytes.
func (t *streamTee) Write(p []byte) { t.events.Write(p) }

// Ended reports whether the last event has passed.
func (t *streamTee) Ended() bool { return t.ended }

// Answer is what was learnt so far.
func (t *streamTee) Answer() dialect.Answer { return t.answer.give() }

// take reads an event. https://platform.openai.com/docs/api-reference/responses-streaming
func (t *streamTee) take(data []byte) bool {
	if string(data) == "[DONE]" { // some servers end each of their streams so
		t.ended = true
		return true
	}
	if rawjson.Valid(data, 0) != nil {
		return false
	}
	e := replyOf(rawjson.ValueOf(data))
	switch e.kind.Text() {
	case "response.output_item.done":
		t.answer.add(e.item)
	case "response.completed", "response.incomplete", "response.failed":
		r := replyOf(e.response)
		t.answer.end(&r)
		t.ended = true
	case "error":
		t.ended = true
	}
	return true
}
