package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// Cut is a condensation without its summary yet. After does not include the summary that the next one replaces.
// ForgottenTokens is net of the tokens that return in other messages, see viewOf.
type Cut struct {
	session.Condensation
	Replaced int // tokens of the summary that the new one replaces; 0 if there is none
}

// maxSummary returns the maximum number of tokens that a summary may have for the view to become smaller.
func (c *Cut) maxSummary() int { return c.Before.Tokens - c.After.Tokens - messageOverhead - 1 }

// cut returns the cut that hides the items not picked. It reports false if there are none but a summary.
func (p *picker) cut() (Cut, bool) {
	p.notes()
	var c Cut
	c.Before = session.Size{Events: len(p.view.Items), Tokens: p.in.Total}
	c.After = c.Before
	gone := make([]bool, p.view.History.Len()+1) // by position
	last := 0
	for i, item := range p.view.Items {
		switch {
		case p.keep[i]:
			continue
		case item.Index < 0:
			c.Replaced = p.tokens[i]
		default:
			pos := p.view.History.Pos(item.Index) // 0 for a system message
			gone[pos], last = true, max(last, pos)
		}
		c.After.Events--
	}
	if last == 0 {
		return Cut{}, false
	}
	c.After.Tokens = reshaped(*p.in, viewOf(p.in, p.keep)).Total
	c.ForgottenTokens = c.Before.Tokens - c.After.Tokens - c.Replaced
	c.sweep(p.in, gone[:last+1])
	c.cover(p.view, last)
	c.Offset = min(c.Forgotten[0].From, firstForgotten(p.view.Applied))
	c.Stripped = p.view.History.LastSealed()
	return c, true
}

// viewOf returns a view with only the items to keep. Results whose parts stand in one that goes are whole again.
func viewOf(in *Input, keep []bool) *session.View {
	v := &session.View{History: in.View.History, Applied: in.View.Applied}
	for i, item := range in.View.Items {
		if keep[i] {
			v.Items = append(v.Items, item)
		}
	}
	Render(in.Codec, v)
	return v
}

// sweep hides the given positions, and with them those in between that an earlier stage of a pipeline left out of the view.
// Otherwise these would come back without their neighbours.
func (c *Cut) sweep(in *Input, gone []bool) {
	history := in.View.History
	stay := in.View.Forgotten() // by position: hidden before, or shown
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

// itemsByPosition returns the index of each item of a view by its position. System messages share position 0.
func itemsByPosition(v *session.View) map[int]int {
	at := make(map[int]int, len(v.Items))
	for i, item := range v.Items {
		if item.Index >= 0 {
			at[v.History.Pos(item.Index)] = i
		}
	}
	return at
}

// asSent returns the message at a position as the client sent it.
func asSent(h *session.History, position int) session.Item {
	m := h.Message(position)
	return session.Item{Index: h.At(position), Raw: m.Raw, Kind: m.Kind}
}

func plus(a, b session.Size) session.Size {
	return session.Size{Events: a.Events + b.Events, Tokens: a.Tokens + b.Tokens}
}

func total(tokens []int) int {
	sum := 0
	for _, n := range tokens {
		sum += n
	}
	return sum
}

// cover sets the prefix of the cut. It includes that of the summary before, from which the new one is made.
func (c *Cut) cover(v *session.View, last int) {
	for _, a := range v.Applied {
		last = max(last, a.Prefix)
	}
	c.Prefix, c.Hash = last, v.History.Chain[last]
}

// firstForgotten returns the first position that condensations hide, or unlimited if they hide none.
func firstForgotten(applied []session.Condensation) int {
	first := unlimited
	for _, c := range applied {
		if len(c.Forgotten) > 0 {
			first = min(first, c.Forgotten[0].From)
		}
	}
	return first
}
