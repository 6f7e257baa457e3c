package condense

import (
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// picker picks the items of a view that stay: what is protected, a head, and the largest tail that still fits. It picks
// whole blocks only.
type picker struct {
	view   *session.View
	tokens []int        // of each item, nil where tokens do not matter
	blocks []int        // number of each item's block, -1 for a summary
	keep   []bool       // what was picked
	kept   session.Size // size of what was picked
}

func newPicker(v *session.View, tokens []int) *picker {
	p := &picker{view: v, tokens: tokens, blocks: make([]int, len(v.Items)), keep: make([]bool, len(v.Items))}
	alive := make([]bool, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index >= 0 {
			alive[item.Index] = true
		}
	}
	number := make([]int, len(alive))
	for n, b := range blocks(v.History.Messages, alive) {
		for i := b.From; i < b.To; i++ {
			number[i] = n
		}
	}
	for i, item := range v.Items {
		p.blocks[i] = -1
		if item.Index >= 0 {
			p.blocks[i] = number[item.Index]
		}
	}
	return p
}

// size is the size of items [from, to) that were not picked yet, summaries left out.
func (p *picker) size(from, to int) session.Size {
	var s session.Size
	for i := from; i < to; i++ {
		if p.keep[i] || p.blocks[i] < 0 {
			continue
		}
		s.Events++
		if p.tokens != nil {
			s.Tokens += p.tokens[i]
		}
	}
	return s
}

// pick picks items [from, to), summaries left out.
func (p *picker) pick(from, to int) {
	s := p.size(from, to)
	p.kept.Events += s.Events
	p.kept.Tokens += s.Tokens
	for i := from; i < to; i++ {
		p.keep[i] = p.keep[i] || p.blocks[i] >= 0
	}
}

// protect picks what is never forgotten: system messages, the newest user message and the last block, which may still
// wait for an answer.
func (p *picker) protect() {
	last, user := -1, -1
	for i, item := range p.view.Items {
		switch {
		case item.Index < 0:
			continue
		case item.Kind == session.System:
			p.pick(i, i+1)
			continue
		case item.Kind == session.User:
			user = i
		}
		last = i
	}
	for _, i := range [...]int{user, last} {
		if i >= 0 {
			p.pick(p.block(i))
		}
	}
}

// summaries picks the view's summary, for a strategy that makes none of its own.
func (p *picker) summaries() {
	for i, n := range p.blocks {
		if n < 0 {
			p.keep[i] = true
			p.kept.Events++
			if p.tokens != nil {
				p.kept.Tokens += p.tokens[i]
			}
		}
	}
}

// head picks the first n messages, system messages not counted, and the first that a person typed. A block that it would split it
// picks whole if the target is still met then, else not at all. It ends where something was forgotten before: what stands behind a
// summary is no beginning, and a head that grew would move the summary.
func (p *picker) head(codec Codec, n int, target session.Size) {
	end, typed := p.beginning(), p.firstTyped(codec)
	if typed < end {
		p.pick(p.block(typed))
	}
	for i := 0; i < end && (n > 0 || i < typed && p.view.Items[i].Kind == session.User); {
		from, to := p.block(i)
		for ; i < to; i++ {
			if p.view.Items[i].Kind != session.System {
				n--
			}
		}
		if n < 0 && !fits(p.kept, p.size(from, to), target) {
			return
		}
		p.pick(from, to)
	}
}

// firstTyped is the first item that a person typed, not an agent in his name; where there is none, the first user message. It is the
// number of items if there is no user message either.
func (p *picker) firstTyped(codec Codec) int {
	first := len(p.view.Items)
	for i, item := range p.view.Items {
		if item.Index < 0 || item.Kind != session.User {
			continue
		}
		if record.Typed(read(codec, item.Raw)) {
			return i
		}
		first = min(first, i)
	}
	return first
}

// beginning is the number of items before anything was forgotten.
func (p *picker) beginning() int {
	first := firstForgotten(p.view.Applied)
	for i, item := range p.view.Items {
		if item.Index < 0 || first > 0 && p.view.History.Pos(item.Index) > first {
			return i
		}
	}
	return len(p.view.Items)
}

func firstForgotten(applied []session.Condensation) int {
	first := 0
	for _, c := range applied {
		if len(c.Forgotten) > 0 && (first == 0 || c.Forgotten[0].From < first) {
			first = c.Forgotten[0].From
		}
	}
	return first
}

// tail picks blocks from the end for as long as the target is met.
func (p *picker) tail(target session.Size) {
	for end := len(p.view.Items); end > 0; {
		from, to := p.block(end - 1)
		more := p.size(from, to)
		if more.Events > 0 && !fits(p.kept, more, target) {
			return
		}
		p.pick(from, to)
		end = from
	}
}

func fits(kept, more, target session.Size) bool {
	return kept.Events+more.Events <= target.Events && kept.Tokens+more.Tokens <= target.Tokens
}

// block gives the items [from, to) that are in the same block as item i. A block's items stand next to each other.
func (p *picker) block(i int) (from, to int) {
	from, to = i, i+1
	for from > 0 && p.blocks[from-1] == p.blocks[i] {
		from--
	}
	for to < len(p.blocks) && p.blocks[to] == p.blocks[i] {
		to++
	}
	return from, to
}
