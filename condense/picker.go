package condense

import (
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// picker picks the items of a view that stay: what is protected, a head, and the largest tail that still fits. It picks
// whole blocks only.
type picker struct {
	in     *Input
	view   *session.View
	tokens []int        // of each item
	blocks []int        // number of each item's block, -1 for a summary
	keep   []bool       // what was picked
	kept   session.Size // size of what was picked
}

func newPicker(in *Input, tokens []int) *picker {
	v := in.View
	p := &picker{in: in, view: v, tokens: tokens, blocks: make([]int, len(v.Items)), keep: make([]bool, len(v.Items))}
	alive := make([]bool, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index >= 0 {
			alive[item.Index] = true
		}
	}
	number := blocks(v.History.Messages, alive)
	for i, item := range v.Items {
		p.blocks[i] = -1
		if item.Index >= 0 {
			p.blocks[i] = number[item.Index]
		}
	}
	return p
}

// blocks numbers a history's units, with those joined that a client tore apart: a call whose result comes only after other
// messages. A cut forgets a block whole or not at all, so that it never adds a defect to those the client sent. Calls that
// are already forgotten (not alive) bind nothing.
func blocks(messages []session.Message, alive []bool) []int {
	numbers, last := make([]int, len(messages)), answers(messages, alive)
	number, end := -1, 0
	for _, u := range session.Units(messages) {
		if u.From >= end {
			number++
		}
		for i := u.From; i < u.To; i++ {
			numbers[i], end = number, max(end, last[i]+1)
		}
	}
	return numbers
}

// answers tells for each message the index of the last message that answers one of its calls, its own index if none
// does. Only the first answer counts, and a call that uses an id again ends the wait for the older one.
func answers(messages []session.Message, alive []bool) []int {
	last := make([]int, len(messages))
	asked := map[string]int{}
	for i := range messages {
		m := &messages[i]
		last[i] = i
		if by, ok := asked[m.Result]; ok && m.Kind == session.Observation {
			last[by] = i
			delete(asked, m.Result)
		}
		for _, id := range m.Calls {
			delete(asked, id)
			if alive[i] {
				asked[id] = i
			}
		}
	}
	return last
}

// size is the size of items [from, to) that were not picked yet, summaries left out.
func (p *picker) size(from, to int) session.Size {
	var s session.Size
	for i := from; i < to; i++ {
		if !p.keep[i] && p.blocks[i] >= 0 {
			s.Events, s.Tokens = s.Events+1, s.Tokens+p.tokens[i]
		}
	}
	return s
}

// pick picks items [from, to), summaries left out.
func (p *picker) pick(from, to int) {
	s := p.size(from, to)
	p.kept = session.Size{Events: p.kept.Events + s.Events, Tokens: p.kept.Tokens + s.Tokens}
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
			p.kept = session.Size{Events: p.kept.Events + 1, Tokens: p.kept.Tokens + p.tokens[i]}
		}
	}
}

// head picks the first n messages, system messages not counted, and the first that a person typed. A block that it would split it
// picks whole if the target is still met then, else not at all. It ends where something was forgotten before: what stands behind a
// summary is no beginning, and a head that grew would move the summary.
func (p *picker) head(n int, target session.Size) {
	end, typed := p.beginning(), p.firstTyped()
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
		if n < 0 && !p.fits(from, to, target) {
			return
		}
		p.pick(from, to)
	}
}

// firstTyped is the first item that a person typed, not an agent in his name; where there is none, the first user message. It is the
// number of items if there is no user message either.
func (p *picker) firstTyped() int {
	first := len(p.view.Items)
	for i, item := range p.view.Items {
		if item.Index < 0 || item.Kind != session.User {
			continue
		}
		if record.Typed(read(p.in.Codec, item.Raw)) {
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
		if item.Index < 0 || p.view.History.Pos(item.Index) > first {
			return i
		}
	}
	return len(p.view.Items)
}

// tail picks blocks from the end for as long as the target is met.
func (p *picker) tail(target session.Size) {
	for end := len(p.view.Items); end > 0; {
		from, to := p.block(end - 1)
		if !p.fits(from, to, target) {
			return
		}
		p.pick(from, to)
		end = from
	}
}

// fits reports whether the target is met with items [from, to), too.
func (p *picker) fits(from, to int, target session.Size) bool {
	more := p.size(from, to)
	return more.Events == 0 || p.kept.Events+more.Events <= target.Events && p.kept.Tokens+more.Tokens <= target.Tokens
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
