package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// Cut is what a condensation would forget.
type Cut struct {
	Forgotten []session.Range // positions newly forgotten, ascending
	Tokens    int             // of the messages newly forgotten
	Replaced  int             // tokens of the summary that the next one replaces, 0 if there is none
	Prefix    int             // last position that this or an earlier condensation of the view forgot
	Hash      session.Hash    // chain hash of the prefix
	Offset    int             // first position ever forgotten: where the summary stands
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

// Cut finds what to forget so that the view comes down to d's target, leaving room for a summary of the given size. It
// reports false if there is nothing to forget, or too little: less than the minimum progress, or no more tokens than the
// summary would add.
func (s Settings) Cut(in Input, d Due, summary session.Size) (Cut, bool) {
	tokens := in.Measure(in.View.Items)
	p := newPicker(in.View, tokens)
	p.kept = summary
	p.protect()
	p.head(s.KeepFirst)
	p.tail(d.Target)

	c := Cut{Before: session.Size{Events: len(in.View.Items), Tokens: in.Total}}
	c.Kept = c.Before
	for i, item := range in.View.Items {
		switch {
		case p.keep[i]:
			continue
		case item.Index < 0:
			c.Replaced = tokens[i]
		default:
			c.forget(in.View.History.Pos(item.Index))
			c.Tokens += tokens[i]
		}
		c.Kept.Events--
		c.Kept.Tokens -= tokens[i]
	}
	if len(c.Forgotten) == 0 || !s.worthwhile(c, d, summary) {
		return Cut{}, false
	}
	c.cover(in.View)
	return c, true
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
	return d.Events && s.progress(c.Before.Events, after.Events) || d.Tokens && s.progress(c.Before.Tokens, after.Tokens)
}

func (s Settings) progress(before, after int) bool {
	return after < before && float64(before-after) >= s.MinimumProgress*float64(before)
}
