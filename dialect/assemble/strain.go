package assemble

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// Answers is how a dialect reads several answers that become one, and what the client gets of them.
type Answers interface {
	// Event takes an event of a stream.
	Event(data []byte) Passing
	// Whole takes an answer that is not streamed.
	Whole(body []byte)
	// Rest is an answer that Whole took as the client gets it.
	Rest(body []byte) []byte
	// Said is what the model said in this answer.
	Said() dialect.Said
	// Next begins another answer.
	Next()
	// Echo is the answer as the client will send it back, nil if none can be told.
	Echo() []byte
}

// Passing is what the client gets in the place of an event; zero: nothing.
type Passing struct {
	Text []byte
	End  []byte // ends an answer that calls hidden tools alone: it is held back with all that follows
	Wait bool   // Text, and what comes with it, is kept until an event does not wait
	Drop bool   // what was kept so is dropped
}

// Strain makes one answer of several.
func Strain(streamed bool, a Answers) dialect.Strainer {
	if !streamed {
		return &whole{Answers: a}
	}
	s := &stream{Answers: a}
	s.lines = split.Lines{Take: s.take, Pass: s.give}
	return s
}

// whole reads answers that are not streamed.
type whole struct {
	Answers
	body []byte
}

func (w *whole) Write(p []byte) []byte {
	w.body = append(w.body, p...)
	return nil
}

func (w *whole) Close() dialect.Said {
	if split.Sound(w.body) {
		w.Whole(w.body)
	}
	return w.Said()
}

func (w *whole) Next() {
	w.Answers.Next()
	w.body = nil
}

func (w *whole) Finish() []byte {
	if !split.Sound(w.body) {
		return w.body
	}
	return w.Rest(w.body)
}

// stream reads answers as they come.
type stream struct {
	Answers
	lines split.Lines
	out   []byte
	kept  []byte // waits
	waits bool
	held  []byte // the end of an answer that may not be the last one
	holds bool
}

func (s *stream) Write(p []byte) []byte {
	s.out = nil
	s.lines.Write(p)
	return s.out
}

func (s *stream) Close() dialect.Said {
	s.out = nil
	s.lines.Close()
	s.waits = false
	s.give(nil)
	return s.Said()
}

func (s *stream) Next() {
	s.Answers.Next()
	s.held, s.holds = nil, false
}

func (s *stream) Finish() []byte { return append(s.out, s.held...) }

// take reads an event, and hands on what the client gets of it.
func (s *stream) take(data, lines []byte) bool {
	p := Passing{Text: data}
	if split.Sound(data) || string(data) == split.Done {
		p = s.Event(data)
	}
	if p.Drop {
		s.kept = nil
	}
	if s.waits = p.Wait; p.Text != nil {
		s.give(framed(lines, data, p.Text))
	}
	if p.End == nil {
		return p.Text != nil
	}
	if p.Text != nil {
		s.give([]byte{'\n'})
	}
	s.holds = true
	s.give(framed(lines, data, p.End))
	return true
}

// framed is the lines of an event with other data.
func framed(lines, data, text []byte) []byte {
	if bytes.Equal(data, text) {
		return lines
	}
	name := lines[:bytes.LastIndexByte(lines[:len(lines)-1], '\n')+1] // the last line is that of the data
	return slices.Concat(name, []byte("data: "), text, []byte{'\n'})
}

// give hands text on, or holds it back.
func (s *stream) give(text []byte) {
	to := &s.out
	switch {
	case s.waits:
		to = &s.kept
	case s.holds:
		to = &s.held
	}
	if to != &s.kept && len(s.kept) > 0 {
		*to, s.kept = append(*to, s.kept...), nil
	}
	*to = append(*to, text...)
}
