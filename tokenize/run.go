package tokenize

import "unicode/utf8"

// run is one encoding of one text.
type run struct {
	encoder *Encoder
	out     tokens
	scratch *merger // nil until a piece must be merged
}

// tokens is what an encoding comes to: their number, and themselves if they are to be kept.
type tokens struct {
	n    int
	ids  []uint32
	keep bool
}

func (t *tokens) add(id uint32) {
	t.n++
	if t.keep {
		t.ids = append(t.ids, id)
	}
}

func (r *run) text(text string) {
	e := r.encoder
	if !utf8.ValidString(text) {
		text = repair(text)
	}
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		if id := e.vocabulary.find(text[i:end]); id != none {
			r.out.add(id)
		} else {
			r.merge(text[i:end])
		}
		i = end
	}
	e.release(r.scratch)
}

// merge encodes a piece that is no token.
func (r *run) merge(piece string) {
	e := r.encoder
	if r.scratch == nil {
		r.scratch = e.scratch()
	}
	if len(piece) > shortPiece {
		r.scratch.windows(e.vocabulary, piece, e.window, &r.out)
		return
	}
	p := &r.scratch.parts
	p.merge(e.vocabulary, piece)
	for _, id := range p.id[:p.n] {
		r.out.add(id)
	}
}
