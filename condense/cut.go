package condense

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Cut is what a condensation would forget.
type Cut struct {
	Forgotten []session.Range // positions newly forgotten, ascending
	Tokens    int             // of the messages newly forgotten, less what comes back of them elsewhere
	Replaced  int             // tokens of the summary that the next one replaces, 0 if there is none
	Prefix    int             // last position that this or an earlier condensation of the view forgot
	Hash      session.Hash    // chain hash of the prefix
	Offset    int             // first position ever forgotten: where the summary stands
	Stripped  int             // last position whose sealed reasoning has to go, 0 if none has
	Before    session.Size    // of the view; tokens are those of the whole request
	Kept      session.Size    // the same without what goes and without the replaced summary
}

// Positions lists the positions newly forgotten, ascending.
func (c *Cut) Positions() []int {
	var positions []int
	for _, r := range c.Forgotten {
		for p := r.From; p < r.To; p++ {
			positions = append(positions, p)
		}
	}
	return positions
}

// After is the view's size with a summary of that many tokens.
func (c *Cut) After(summary session.Size) session.Size {
	return session.Size{Events: c.Kept.Events + summary.Events, Tokens: c.Kept.Tokens + summary.Tokens}
}

// Cut finds what to forget so that the view comes down to d's target, leaving room for a summary of the given size, which
// replaces the one that the view shows. Of the size zero there is none: what the view shows stays. It reports false if
// there is nothing to forget, or too little: less than the minimum progress, or no more tokens than the summary would add.
func (s Settings) Cut(in Input, d Due, summary session.Size) (Cut, bool) {
	p := s.picker(in, d, summary)
	p.tail(d.Target)
	return s.cut(in, d, p, summary)
}

// picker has picked what every rolling strategy keeps: what is protected, and the head.
func (s Settings) picker(in Input, d Due, summary session.Size) *picker {
	p := newPicker(in.View, in.Measure(in.View.Items))
	p.kept = summary
	if summary == (session.Size{}) {
		p.summaries()
	}
	p.protect()
	p.head(in.Codec, s.KeepFirst, d.Target)
	return p
}

// cut forgets what was not picked, if that is worth while.
func (s Settings) cut(in Input, d Due, p *picker, summary session.Size) (Cut, bool) {
	c, ok := p.cut(in)
	if !ok || !s.worthwhile(c, d, summary) {
		return Cut{}, false
	}
	return c, true
}

// cut forgets what was not picked. It reports false if that is nothing but a summary.
func (p *picker) cut(in Input) (Cut, bool) {
	c := Cut{Before: session.Size{Events: len(in.View.Items), Tokens: in.Total}}
	c.Kept = c.Before
	gone := map[int]bool{}
	for i, item := range in.View.Items {
		switch {
		case p.keep[i]:
			continue
		case item.Index < 0:
			c.Replaced = p.tokens[i]
		default:
			gone[in.View.History.Pos(item.Index)] = true
			c.Tokens += p.tokens[i]
		}
		c.Kept.Events--
		c.Kept.Tokens -= p.tokens[i]
	}
	if len(gone) == 0 {
		return Cut{}, false
	}
	c.sweep(in, gone)
	c.cover(in.View)
	c.Stripped = LastSealed(in.View.History)
	back := returning(in, func(i int) bool { return p.keep[i] })
	c.Tokens, c.Kept.Tokens = c.Tokens-back, c.Kept.Tokens+back
	return c, true
}

// returning is how many tokens more the items that are kept have because others are not: they show what they had left out since
// those showed it.
func returning(in Input, keep func(i int) bool) int {
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
	kept := slices.Clone(v.Items)
	Render(in.Codec, &v)
	before, after := changed(kept, v.Items)
	return total(in.Measure(after)) - total(in.Measure(before))
}

// sweep forgets the positions that go, and with them those up to the last of them that an earlier stage of a pipeline
// had already left out of the view: else they would come back, without their neighbours.
func (c *Cut) sweep(in Input, gone map[int]bool) {
	history := in.View.History
	shown, before := make([]bool, history.Len()+1), in.View.Forgotten()
	for _, item := range in.View.Items {
		if item.Index >= 0 {
			shown[history.Pos(item.Index)] = true
		}
	}
	var hidden []session.Item
	for p, left := 1, len(gone); left > 0; p++ {
		switch {
		case gone[p]:
			left--
		case shown[p] || before[p]:
			continue
		default:
			hidden = append(hidden, asSent(history, p))
		}
		c.forget(p)
	}
	if len(hidden) > 0 {
		c.Tokens += total(in.Measure(hidden))
	}
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

// forget adds a position, which is greater than those added before.
func (c *Cut) forget(position int) {
	if n := len(c.Forgotten); n > 0 && c.Forgotten[n-1].To == position {
		c.Forgotten[n-1].To++
		return
	}
	c.Forgotten = append(c.Forgotten, session.Range{From: position, To: position + 1})
}

// cover sets what prefix the cut is about. The new summary is made from the one before it, so it covers that one's
// prefix too.
func (c *Cut) cover(v *session.View) {
	c.Offset = c.Forgotten[0].From
	c.Prefix = c.Forgotten[len(c.Forgotten)-1].To - 1
	for _, a := range v.Applied {
		c.Prefix = max(c.Prefix, a.Prefix)
		if len(a.Forgotten) > 0 {
			c.Offset = min(c.Offset, a.Forgotten[0].From)
		}
	}
	c.Hash = v.History.Chain[c.Prefix]
}

// worthwhile reports whether enough goes, net of the summary, in one of the dimensions that the cut is about.
func (s Settings) worthwhile(c Cut, d Due, summary session.Size) bool {
	after := c.After(summary)
	if after.Tokens >= c.Before.Tokens {
		return false
	}
	if d.Need.Reason == session.ReasonOverflow {
		return true // upstream has refused what is there: any progress is better
	}
	return d.Events && s.progress(c.Before.Events, after.Events) || d.Tokens && s.progress(c.Before.Tokens, after.Tokens)
}

func (s Settings) progress(before, after int) bool {
	return after < before && float64(before-after) >= s.MinimumProgress*float64(before)
}
