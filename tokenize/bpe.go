package tokenize

// shortPiece is the longest piece that is merged by scanning for the lowest rank: quadratic, but over so few ranks that
// it is no slower than a tree.
const shortPiece = 16

// parts is a short piece while it is merged: the tokens so far, and what each makes with the next.
type parts struct {
	id, merged [shortPiece]uint32
	n          int
}

// merge encodes a piece of 2 to shortPiece bytes that is no token itself: the neighbours with the lowest rank become
// one, the leftmost first, until no neighbours make a token. A merged token's id is its rank.
func (p *parts) merge(v *vocabulary, piece string) {
	p.begin(v, piece)
	for {
		at, lowest := p.lowest()
		if lowest == none {
			return
		}
		p.id[at] = lowest
		p.n--
		copy(p.id[at+1:p.n], p.id[at+2:p.n+1])
		copy(p.merged[at+1:p.n], p.merged[at+2:p.n+1])
		p.merged[at] = none
		if at+1 < p.n {
			p.merged[at] = v.pairs.merge(lowest, p.id[at+1])
		}
		if at > 0 {
			p.merged[at-1] = v.pairs.merge(p.id[at-1], lowest)
		}
	}
}

func (p *parts) begin(v *vocabulary, piece string) {
	p.n = len(piece)
	last := p.n - 1
	for i := range last {
		p.id[i] = v.single[piece[i]]
		p.merged[i] = v.double[int(piece[i])<<8|int(piece[i+1])]
	}
	p.id[last], p.merged[last] = v.single[piece[last]], none
}

func (p *parts) lowest() (at int, lowest uint32) {
	lowest = none
	for i, rank := range p.merged[:p.n] {
		if rank < lowest {
			at, lowest = i, rank
		}
	}
	return at, lowest
}
