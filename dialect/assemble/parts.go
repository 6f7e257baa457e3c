package assemble

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Parts is what is known of answers that are lists of parts, of which some are calls.
type Parts struct {
	Hidden  func(tool string) bool
	Parts   []Part // of this answer
	Usage   []byte // likewise
	Used    []byte // by the answers before it
	Answers int    // before it

	shown   [][]byte    // parts that the client has got of them
	numbers map[int]int // of parts of a stream, as the client counts them; those that it does not get have none
	shownTo int         // parts that it has got
}

// Part is a part of an answer.
type Part struct {
	Raw  []byte
	Seen []byte        // as the client gets it; nil: it does not
	Call *session.Call // of a hidden tool; nil: it is none
	Own  bool          // a call that the client has to answer
}

// Meter takes a report of usage, if it is one.
func (p *Parts) Meter(v rawjson.Value) {
	if v.Kind == rawjson.Object {
		p.Usage = bytes.Clone(v.Raw)
	}
}

// Next begins another answer.
func (p *Parts) Next() {
	p.shown, p.Used = p.Seen(), split.Sum(p.Used, p.Usage)
	p.Parts, p.Usage = nil, nil
	p.Answers++
	clear(p.numbers)
}

// Seen are the parts that the client has got.
func (p *Parts) Seen() [][]byte {
	all := slices.Clip(p.shown)
	for i := range p.Parts {
		if seen := p.Parts[i].Seen; seen != nil {
			all = append(all, seen)
		}
	}
	return all
}

// Differs reports whether the client gets another answer than this one.
func (p *Parts) Differs() bool {
	return p.Answers > 0 || slices.ContainsFunc(p.Parts, func(part Part) bool { return !bytes.Equal(part.Seen, part.Raw) })
}

// Total adds up what all answers have used; nil: upstream did not say.
func (p *Parts) Total() []byte {
	if len(p.Usage) == 0 {
		return nil
	}
	return split.Sum(p.Used, p.Usage)
}

// Said is what the model said, but for the message, and the parts of that.
func (p *Parts) Said(whole bool) (said dialect.Said, parts [][]byte) {
	said.Whole = whole
	for i := range p.Parts {
		part := &p.Parts[i]
		parts, said.Own = append(parts, part.Raw), said.Own || part.Own
		if part.Call != nil {
			said.Calls = append(said.Calls, *part.Call)
		}
	}
	return said, parts
}

// Begin numbers a part of a stream that the client gets.
func (p *Parts) Begin(index int) {
	if p.numbers == nil {
		p.numbers = map[int]int{}
	}
	p.numbers[index] = p.shownTo
	p.shownTo++
}

// Knows reports whether a part of a stream has a number.
func (p *Parts) Knows(index int) bool {
	_, known := p.numbers[index]
	return known
}

// Conceal takes the number of a part away, whose number may have been another one's before.
func (p *Parts) Conceal(index int) { delete(p.numbers, index) }

// Forget undoes Begin of the last parts that began.
func (p *Parts) Forget(indexes []int) {
	for _, i := range indexes {
		delete(p.numbers, i)
	}
	p.shownTo -= len(indexes)
}

// Numbered gives an event of a part with the number by which the client knows the part, nil if it does not know it.
func (p *Parts) Numbered(data []byte, key string, index int) []byte {
	number, known := p.numbers[index]
	switch {
	case !known:
		return nil
	case number == index:
		return data
	}
	return split.WithMember(data, key, Encode(number))
}
