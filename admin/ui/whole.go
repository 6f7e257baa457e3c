package ui

import (
	"fmt"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Whole is the page of a whole message.
type Whole struct {
	Place
	Who, Number string
	Tokens      int
	Size        string
	Fate        string
	Class       Fate
	Left, Right string // as sent and as the model saw it; Right is empty if that is the same
	Part, Parts int    // a long message has several pages
	Older       string // address of the part before; empty: none
	Newer       string
	StepURL     string
	Step        int
	Missing     Missing
}

func (Whole) template() string { return "whole" }

// Heading returns the title.
func (w Whole) Heading() string { return fmt.Sprintf("Message %s · %s", w.Number, w.Title) }

// partBytes is how much of a message a page shows.
const partBytes = 40 << 10

// NewWhole makes the page of the message with an index, and reports whether there is one.
func NewWhole(in *StepReads, index, part int) (Whole, bool) {
	if index < 0 || index >= len(in.Messages) {
		return Whole{}, false
	}
	l := newLayout(in)
	m := &in.Messages[index]
	fate := l.fate(index)
	w := Whole{
		Place: in.Place, Who: speakers[m.Kind], Number: count(m.Pos), Tokens: m.Tokens, Fate: fate.Words(), Class: fate, Missing: in.Missing,
		StepURL: fmt.Sprintf("%s#m%d", in.Place.stepURL(in.Place.At), index), Step: stepAfter(in.Steps, in.Place.At),
	}
	if m.Kind == session.System {
		w.Number = "of the system"
	}
	if m.Content == nil {
		return w, true
	}
	text := written(m.Content)
	w.Size = size(len(text))
	each := partBytes
	if escaped(text) > 2*len(text) {
		each /= 3
	}
	w.Parts = max(1, (len(text)+each-1)/each)
	w.Part = min(max(part, 1), w.Parts)
	w.Left = visible(piece(text, w.Part, each))
	if seen, ok := l.seen[index]; ok && fate != Kept && seen.Content != nil && w.Parts == 1 {
		w.Right = visible(piece(written(seen.Content), 1, each))
	}
	url := in.Place.messageURL(index)
	if w.Part > 1 {
		w.Older = fmt.Sprintf("%s?part=%d", url, w.Part-1)
	}
	if w.Part < w.Parts {
		w.Newer = fmt.Sprintf("%s?part=%d", url, w.Part+1)
	}
	return w, true
}

// piece returns a part of a text, at whole characters.
func piece(text string, part, each int) string {
	edge := func(n int) int {
		n = min(n, len(text))
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		return n
	}
	return text[edge((part-1)*each):edge(part*each)]
}
