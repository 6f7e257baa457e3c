package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Tee begins to read an answer: a stream of chunks, or one body.
//
// Of a stream, Ended is true once the [DONE] mark has passed, whatever else was seen: a stream that ends without it was
// cut off, unless its server never sends one. Answer().Finish then tells whether the model had finished. Of a body,
// Ended is true once its outermost bracket has closed, even if the body is too long to be read; a body that is no object
// or array never ends.
//
// Only the choice with index 0 counts. Usage is the last one reported, in the answer or in the choice.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	if !streamed {
		return &wholeTee{answer: answer{most: d.options.MaxKept}, most: d.options.MaxAnswer}
	}
	t := &streamTee{answer: answer{most: d.options.MaxKept}}
	t.events = events{take: t.take, most: d.options.MaxEvent}
	return t
}

// done ends a stream.
const done = "[DONE]"

type streamTee struct {
	events events
	answer answer
	done   bool
}

func (t *streamTee) Write(p []byte) { t.events.write(p) }

func (t *streamTee) Ended() bool { return t.done || string(t.events.pending()) == done }

func (t *streamTee) Answer() dialect.Answer { return t.answer.give() }

func (t *streamTee) take(data []byte) bool {
	if string(data) == done {
		t.done = true
		return true
	}
	return t.answer.read(data)
}

type wholeTee struct {
	answer answer
	most   int
	body   []byte
	long   bool
	read   bool
	end    end
}

func (t *wholeTee) Write(p []byte) {
	p = p[:t.end.write(p)]
	if t.long = t.long || len(t.body)+len(p) > t.most; t.long {
		t.body = nil
		return
	}
	t.body = append(t.body, p...)
}

func (t *wholeTee) Ended() bool { return t.end.closed }

func (t *wholeTee) Answer() dialect.Answer {
	if !t.read && !t.long && t.end.closed {
		t.read = true
		t.answer.read(t.body)
		t.body = nil
	}
	return t.answer.give()
}

// end follows a JSON object or array to the bracket that closes it, and checks nothing else.
type end struct {
	depth    int
	inString bool
	escaped  bool
	closed   bool
}

// write takes the next bytes, and tells how many of them stand before the end.
func (e *end) write(p []byte) int {
	for i, c := range p {
		if e.closed {
			return i
		}
		e.next(c)
	}
	return len(p)
}

func (e *end) next(c byte) {
	switch {
	case e.escaped:
		e.escaped = false
	case e.inString:
		e.escaped, e.inString = c == '\\', c != '"'
	case c == '"':
		e.inString = true
	case c == '{' || c == '[':
		e.depth++
	case c == '}' || c == ']':
		e.depth--
		e.closed = e.depth <= 0
	}
}

// teeDepth is how deep a chunk may be nested.
const teeDepth = 64

// sound reports whether data is a JSON object.
func sound(data []byte) bool {
	return rawjson.Valid(data, teeDepth) == nil && rawjson.ValueOf(data).Kind == rawjson.Object
}
