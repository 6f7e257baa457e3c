package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// Cut is what a condensation forgets, still without a summary: After is what stays, less the summary that the next one replaces, and
// ForgottenTokens is less what comes back elsewhere of the messages that go.
type Cut struct {
	session.Condensation
	Replaced int // tokens of the summary that the next one replaces, 0 if there is none
}

// with is the view's size with a summary.
func (c *Cut) with(summary session.Size) session.Size {
	return session.Size{Events: c.After.Events + summary.Events, Tokens: c.After.Tokens + summary.Tokens}
}

// gain is the most tokens that may stand for the forgotten messages, so that the view is smaller without them.
func (c *Cut) gain() int { return c.Before.Tokens - c.After.Tokens - messageOverhead - 1 }

// cut forgets what was not picked. It reports false if that is nothing but a summary.
func (p *picker) cut() (Cut, bool) {
	var c Cut
	c.Before = session.Size{Events: len(p.view.Items), Tokens: p.in.Total}
	c.After = c.Before
	gone, last := make([]bool, p.view.History.Len()+1), 0
	for i, item := range p.view.Items {
		switch {
		case p.keep[i]:
			continue
		case item.Index < 0:
			c.Replaced = p.tokens[i]
		default:
			last = p.view.History.Pos(item.Index)
			gone[last] = true
			c.ForgottenTokens += p.tokens[i]
		}
		c.After.Events--
		c.After.Tokens -= p.tokens[i]
	}
	if last == 0 {
		return Cut{}, false
	}
	c.sweep(p.in, gone[:last+1])
	c.cover(p.view, last)
	c.Offset = min(c.Forgotten[0].From, firstForgotten(p.view.Applied))
	c.Stripped = LastSealed(p.view.History)
	back := returning(p.in, func(i int) bool { return p.keep[i] })
	c.ForgottenTokens, c.After.Tokens = c.ForgottenTokens-back, c.After.Tokens+back
	return c, true
}

// returning is how many tokens more the items that are kept have because others are not: they show what they had left out since
// those showed it.
func returning(in *Input, keep func(i int) bool) int {
	v, copies := session.View{History: in.View.History}, false
	for i, item := range in.View.Items {
		if keep(i) {
			v.Items = append(v.Items, item)
			copies = copies || item.Trim != nil && len(item.Trim.Copies) > 0
		}
	}
	if !copies {
		return 0
	}
	before := total(in.Measure(v.Items))
	Render(in.Codec, &v)
	return total(in.Measure(v.Items)) - before
}

// sweep forgets the positions that go, and with them those up to the last of them that an earlier stage of a pipeline
// had already left out of the view: else they would come back, without their neighbours.
func (c *Cut) sweep(in *Input, gone []bool) {
	history, stay := in.View.History, in.View.Forgotten()
	for _, item := range in.View.Items {
		if item.Index >= 0 {
			stay[history.Pos(item.Index)] = true
		}
	}
	var hidden []session.Item
	for p := 1; p < len(gone); p++ {
		if stay[p] && !gone[p] {
			continue
		}
		if !stay[p] {
			hidden = append(hidden, asSent(history, p))
		}
		if n := len(c.Forgotten); n > 0 && c.Forgotten[n-1].To == p {
			c.Forgotten[n-1].To++
		} else {
			c.Forgotten = append(c.Forgotten, session.Range{From: p, To: p + 1})
		}
	}
	c.ForgottenTokens += total(in.Measure(hidden))
}

// asSent is a position as the client sent it.
func asSent(h *session.History, position int) session.Item {
	m := h.Message(position)
	return session.Item{Index: h.At(position), Raw: m.Raw, Kind: m.Kind}
}

func total(tokens []int) int {
	sum := 0
	for _, n := range tokens {
		sum += n
	}
	return sum
}

// cover sets what prefix the cut is about. The new summary is made from the one before it, so it covers that one's
// prefix too.
func (c *Cut) cover(v *session.View, last int) {
	for _, a := range v.Applied {
		last = max(last, a.Prefix)
	}
	c.Prefix, c.Hash = last, v.History.Chain[last]
}

// firstForgotten is the first position that condensations forget, unlimited if they forget none.
func firstForgotten(applied []session.Condensation) int {
	first := unlimited
	for _, c := range applied {
		if len(c.Forgotten) > 0 {
			first = min(first, c.Forgotten[0].From)
		}
	}
	return first
}
