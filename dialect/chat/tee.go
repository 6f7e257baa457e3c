package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
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
	t.events = split.Events{Take: t.take, Most: d.options.MaxEvent}
	return t
}

// done ends a stream.
const done = "[DONE]"

type streamTee struct {
	events split.Events
	answer answer
	done   bool
}

func (t *streamTee) Write(p []byte) { t.events.Write(p) }

func (t *streamTee) Ended() bool { return t.done || string(t.events.Pending()) == done }

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
	end    split.End
}

func (t *wholeTee) Write(p []byte) {
	p = p[:t.end.Write(p)]
	if t.long = t.long || len(t.body)+len(p) > t.most; t.long {
		t.body = nil
		return
	}
	t.body = append(t.body, p...)
}

func (t *wholeTee) Ended() bool { return t.end.Closed }

func (t *wholeTee) Answer() dialect.Answer {
	if !t.read && !t.long && t.end.Closed {
		t.read = true
		t.answer.read(t.body)
		t.body = nil
	}
	return t.answer.give()
}

// teeDepth is how deep a chunk may be nested.
const teeDepth = 64

// sound reports whether data is a JSON object.
func sound(data []byte) bool {
	return rawjson.Valid(data, teeDepth) == nil && rawjson.ValueOf(data).Kind == rawjson.Object
}
