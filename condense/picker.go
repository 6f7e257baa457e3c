package condense

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// picker picks whole blocks of a view that stay: the protected ones, a head, and the longest tail that fits.
type picker struct {
	in     *Input
	view   *session.View
	tokens []int        // of each item
	blocks []int        // block number of each item, -1 for a summary
	keep   []bool       // items picked
	kept   session.Size // size of the items picked
	first  int          // index of the first item that is not a system message
	urgent bool         // the request has to become smaller

	replaced []bool // see session.History.Replaced
}

func newPicker(in *Input, tokens []int) *picker {
	v := in.View
	p := &picker{in: in, view: v, tokens: tokens, blocks: make([]int, len(v.Items)), keep: make([]bool, len(v.Items)), first: firstOther(v.Items),
		urgent: in.Need.Hard, replaced: v.History.Replaced(),
	}
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

func (p *picker) isReplaced(index int) bool { return p.replaced != nil && p.replaced[index] }

// notes picks the replaced notes of messages that stay.
func (p *picker) notes() {
	stays := true // the last message before, or there is none
	for i, item := range p.view.Items {
		switch {
		case item.Index < 0:
		case item.Kind != session.System:
			stays = p.keep[i]
		case stays && p.isReplaced(item.Index):
			p.pick(i, i+1)
		}
	}
}

// firstOther returns the index of the first item that is not a system message.
func firstOther(items []session.Item) int {
	if i := slices.IndexFunc(items, func(i session.Item) bool { return i.Kind != session.System }); i >= 0 {
		return i
	}
	return len(items)
}

// events counts items for a limit on events. System messages after the first other message do not count: they stay, and an agent that adds
// one at each step would leave less and less room for anything else.
func events(items []session.Item) int {
	n := firstOther(items)
	for _, item := range items[n:] {
		if item.Kind != session.System {
			n++
		}
	}
	return n
}

// blocks numbers the messages of a history by block. A block is a unit, or several units joined because the client separated
// a call from its result by other messages. A cut hides a block as a whole or not at all, so that it adds no defect to those
// that the client sent. Calls that are hidden already (not alive) bind nothing.
func blocks(messages []session.Message, alive []bool) []int {
	numbers := make([]int, len(messages))
	last := make([]int, len(messages)) // by message: index of the last message that answers one of its calls
	for call, result := range session.Answers(messages) {
		if alive[call] {
			last[call] = result
		}
	}
	number := -1
	end := 0 // of the current block
	for _, u := range session.Units(messages) {
		if u.From >= end {
			number++
		}
		for i := u.From; i < u.To; i++ {
			numbers[i] = number
			end = max(end, i+1, last[i]+1)
		}
	}
	return numbers
}

// size returns the size of items [from, to) that are not picked yet, without summaries.
func (p *picker) size(from, to int) session.Size {
	var s session.Size
	for i := from; i < to; i++ {
		if !p.keep[i] && p.blocks[i] >= 0 {
			s = plus(s, session.Size{Events: 1, Tokens: p.tokens[i]})
			if i >= p.first && p.view.Items[i].Kind == session.System {
				s.Events-- // as in events
			}
		}
	}
	return s
}

// pick picks items [from, to), except for summaries.
func (p *picker) pick(from, to int) {
	p.kept = plus(p.kept, p.size(from, to))
	for i := from; i < to; i++ {
		p.keep[i] = p.keep[i] || p.blocks[i] >= 0
	}
}

// cannotFit reports whether a request that has to become smaller cannot with the block of item i, which has files or images, so that its
// results cannot be cut.
func (p *picker) cannotFit(i int) bool {
	from, to := p.block(i)
	attached := slices.ContainsFunc(p.view.Items[from:to], func(i session.Item) bool {
		return i.Index >= 0 && p.view.History.Messages[i.Index].Attached
	})
	return attached && p.in.Need.Hard && p.in.Window > 0 && p.in.Fixed+p.size(from, to).Tokens > Room(*p.in)
}

// protect picks what is never hidden: system messages, what lasts, the newest user message, the newest one that a person typed, the last,
// perhaps open block, whatever the model has not answered yet, the beginning of an open tool loop that upstream accepts only with its reasoning,
// and what the operator or a person keeps. If the window has no room for all of that, some of what is kept goes, and some of what was not
// answered: older words of persons, and files.
func (p *picker) protect() {
	last, user, model, loop, begin := -1, -1, -1, -1, p.in.Loop()
	for i, item := range p.view.Items {
		switch {
		case item.Index < 0:
			continue
		case item.Kind == session.System:
			if !p.isReplaced(item.Index) {
				p.pick(i, i+1)
			}
			continue
		case p.view.History.ByUser(item.Index):
			user = i
		case item.Kind.ByModel():
			model = i
		}
		if p.view.History.Messages[item.Index].Lasts || p.view.History.IsNotice(item.Index) {
			p.pick(p.block(i))
		}
		last = i
		if item.Kind.ByModel() && loop < 0 && begin > 0 && p.view.History.Pos(item.Index) >= begin {
			loop = i
		}
	}
	for _, i := range [...]int{user, newestRequest(p.in), last, loop} {
		if i >= 0 {
			p.pick(p.block(i))
		}
	}
	p.unanswered(model)
	p.stays()
}

// stays picks what is kept, newest first. If the request has to become smaller, what has no room in half of the window goes: the other half is
// for the head and the record.
func (p *picker) stays() {
	kept := p.in.kept()
	for i := len(p.view.Items) - 1; i >= 0; i-- {
		item := &p.view.Items[i]
		if item.Index < 0 || p.keep[i] || !kept[item.Index] {
			continue
		}
		if from, to := p.block(i); !p.urgent || p.hasRoom(from, to, Room(*p.in)/2) {
			p.pick(from, to)
		}
	}
}

// hasRoom reports whether items [from, to) fit a number of tokens of the window, if that is known, with what is picked.
func (p *picker) hasRoom(from, to, tokens int) bool {
	return p.in.Window <= 0 || p.in.Fixed+p.kept.Tokens+p.size(from, to).Tokens <= tokens
}

// unanswered picks what follows the item with the model's newest message, newest first. Of what has no room in the window of a request that
// has to become smaller, it picks only results.
func (p *picker) unanswered(model int) {
	for i := len(p.view.Items) - 1; i > model; i-- {
		item := &p.view.Items[i]
		if item.Index < 0 || p.keep[i] {
			continue
		}
		from, to := p.block(i)
		if p.in.Need.Hard && !p.hasRoom(from, to, Room(*p.in)) && (item.Kind != session.Observation || p.cannotFit(i)) {
			continue
		}
		p.pick(from, to)
	}
}

// edited picks everything up to the user message that the client edits at each step, if that takes at most a quarter of the target's
// tokens and half of its events. A summary of this message would serve one request only. The target is that of the time when the
// condensation is due, so that one prepared before keeps the same.
func (p *picker) edited(target session.Size) {
	if p.in.Thread.Edited == 0 {
		return
	}
	i, shown := itemsByPosition(p.view)[p.in.Thread.Edited]
	if !shown || i >= p.beginning() {
		return
	}
	_, to := p.block(i)
	if head := p.size(0, to); head.Tokens <= target.Tokens/4 && head.Events <= target.Events/2 && p.fits(0, to, target) {
		p.pick(0, to)
	}
}

// summaries picks the view's summary, for a strategy that writes none itself.
func (p *picker) summaries() {
	for i, n := range p.blocks {
		if n < 0 {
			p.keep[i] = true
			p.kept = plus(p.kept, session.Size{Events: 1, Tokens: p.tokens[i]})
		}
	}
}

// head picks the first n messages, not counting system messages, and the first message that a person typed. A block that the
// end of the head would split is picked as a whole if it fits the target, otherwise not at all. The head ends where messages
// were hidden before: what follows a summary is not a beginning, and a head that grew would move the summary.
func (p *picker) head(n int, target session.Size) {
	end := p.beginning()
	typed := p.firstTyped()
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

// firstTyped returns the index of the first item that a person typed, else of the first user message, else len(items).
func (p *picker) firstTyped() int {
	first := len(p.view.Items)
	for i, item := range p.view.Items {
		if item.Index < 0 || item.Kind != session.User {
			continue
		}
		if isTyped(p.in, &item) {
			return i
		}
		first = min(first, i)
	}
	return first
}

// newestRequest returns the index of the newest item that a person typed, -1 if there is none.
func newestRequest(in *Input) int {
	for i := len(in.View.Items) - 1; i >= 0; i-- {
		if isTyped(in, &in.View.Items[i]) {
			return i
		}
	}
	return -1
}

// isTyped reports whether a person typed an item, or a part of it.
func isTyped(in *Input, item *session.Item) bool {
	return item.Index >= 0 && in.View.History.ByUser(item.Index) && record.IsTyped(read(in.Codec, item.Raw))
}

// beginning returns the number of items before the first hidden message.
func (p *picker) beginning() int {
	first := firstForgotten(p.view.Applied)
	for i, item := range p.view.Items {
		if item.Index < 0 || p.view.History.Pos(item.Index) > first {
			return i
		}
	}
	return len(p.view.Items)
}

// tail picks blocks from the end as long as they fit the target.
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

// fits reports whether the target is still met with items [from, to) picked as well.
func (p *picker) fits(from, to int, target session.Size) bool {
	added := p.size(from, to)
	with := plus(p.kept, added)
	return added.Events == 0 || with.Events <= target.Events && with.Tokens <= target.Tokens
}

// block returns the range of items in the same block as item i. The items of a block are adjacent.
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
