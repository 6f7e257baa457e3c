package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Tee begins to read an answer: a stream of chunks, or one body.
//
// Of a stream, Ended is true once the [DONE] mark has passed, whatever else was seen: a stream that ends without it was
// cut off, unless its server never sends one. Answer().Finish then tells whether the model had finished.
//
// Only the choice with index 0 counts. Usage is the last one reported, in the answer or in the choice.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	if !streamed {
		a := &answer{most: d.options.MaxKept}
		return &split.Whole{Read: func(body []byte) { a.read(body) }, Give: a.give, Most: d.options.MaxAnswer}
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

// teeDepth is how deep a chunk may be nested.
const teeDepth = 64

// sound reports whether data is a JSON object.
func sound(data []byte) bool {
	return rawjson.Valid(data, teeDepth) == nil && rawjson.ValueOf(data).Kind == rawjson.Object
}
