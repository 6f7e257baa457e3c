package engine

import (
	"crypto/sha256"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// size measures the view that is forwarded, before calibration.
func (t *Turn) size() session.Size {
	return t.sizeOf(t.counted().before.Tokens)
}

// sizeOf measures the view of a history that has so many tokens.
func (t *Turn) sizeOf(tokens int) session.Size {
	size := session.Size{Events: len(t.shown.view.Items), Tokens: tokens}
	if t.shown.view.Identity() {
		return size
	}
	if t.shown.shaped {
		return session.Size{Events: len(t.shown.view.Items), Tokens: t.counted().fixed + sum(t.itemTokens(t.shown.view.Items))}
	}
	for _, c := range t.shown.applied {
		size.Tokens -= c.ForgottenTokens
	}
	if c := t.shown.view.Summary(); c != nil {
		size.Tokens += c.SummaryTokens
	}
	return size
}

// measured gives a condensation with token counts as the log keeps them: before calibration, which changes with time.
func (t *Turn) measured(c session.Condensation) session.Condensation {
	gone := make(map[int]bool)
	for _, r := range c.Forgotten {
		for p := r.From; p < r.To; p++ {
			gone[p] = true
		}
	}
	c.ForgottenTokens, c.Request = 0, head(t.in.Split.Model)
	items := t.shown.view.Items
	if t.shown.shaped { // the log counts what it gives, not what a condenser makes of that
		items = t.project(t.shown.applied).view.Items
	}
	for i, n := range t.itemTokens(items) {
		item := items[i]
		if item.Index < 0 {
			continue
		}
		p := t.history.Pos(item.Index)
		if gone[p] {
			c.ForgottenTokens += n
			continue
		}
		for j := range c.Trims {
			if c.Trims[j].Pos == p {
				item.Trim = &c.Trims[j]
			}
		}
		item.Strip = p <= c.Stripped && p > 0 && t.in.Split.Messages[item.Index].Sealed
		if was := items[i]; item.Trim != was.Trim || item.Strip && !was.Strip {
			t.render(&item)
			c.ForgottenTokens += n - t.itemTokens([]session.Item{item})[0]
		}
	}
	if c.Summary != "" {
		c.SummaryTokens = t.counter.Message(session.Content{Role: "user", Text: c.Summary})
	}
	return c
}

// itemTokens counts items; those that a condenser rewrote as they are now.
func (t *Turn) itemTokens(items []session.Item) []int {
	out := make([]int, len(items))
	for i, item := range items {
		switch {
		case item.Index < 0:
			out[i] = t.counter.Message(session.Content{Role: "user", Text: item.Summary})
		case sameBytes(item.Raw, t.in.Split.Messages[item.Index].Raw):
			out[i] = t.tokens(&t.in.Split.Messages[item.Index])
		default:
			out[i] = t.tokens(&session.Message{Raw: item.Raw, Digest: sha256.Sum256(item.Raw)})
		}
	}
	return out
}

// sameBytes reports whether two slices are one.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// adjust corrects a count by what was observed of the model, and by what upstream said of this very request.
func (t *Turn) adjust(n int) int {
	return max(t.engine.o.Tokens.Adjust(t.in.Split.Model, n), int(t.scale*float64(n)))
}
