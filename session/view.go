package session

import (
	"math"
	"slices"
)

// Item is one message of a view.
type Item struct {
	Index   int    // of the message in the history, -1 for a summary
	Raw     []byte // the bytes that go upstream; nil for a summary, which the dialect writes
	Summary string // text of a summary
	Kind    Kind

	// The dialect applies these changes to Raw.
	Trim  *Trim  // how much of the text to show, nil for all of it
	Strip bool   // leave out sealed reasoning
	Loose bool   // show sealed reasoning although it is bound to another view, and ask upstream to drop it
	Added string // text to add at the end

	Parts [][]byte // messages that go upstream instead of Raw, nil for Raw
}

// View holds the messages that go upstream. It is never stored, because the history and its condensations determine it.
type View struct {
	History *History
	Applied []Condensation // the condensations that shaped it, oldest first
	Items   []Item
}

// Identity reports whether the view is the history exactly as the client sent it.
func (v *View) Identity() bool {
	n := len(v.History.Messages)
	return len(v.Items) == n && v.Unchanged() == n && !slices.ContainsFunc(v.Items, func(i Item) bool { return i.Parts != nil })
}

// Unchanged returns the number of items at the beginning of the view that are the client's messages as sent, or the replacements that were
// always sent in place of them.
func (v *View) Unchanged() int {
	for i := range v.Items {
		item := &v.Items[i]
		if item.Index != i || item.Trim != nil || item.Strip || item.Added != "" || item.Parts == nil && !v.Verbatim(item) {
			return i
		}
	}
	return len(v.Items)
}

// Verbatim reports whether an item has the bytes that the client sent.
func (v *View) Verbatim(item *Item) bool {
	if item.Index < 0 {
		return false
	}
	own := v.History.Messages[item.Index].Raw
	return len(item.Raw) == len(own) && (len(own) == 0 || &item.Raw[0] == &own[0])
}

// Unbinds reports whether a condensation made after the answer at position p changes the view before that position. If so, sealed
// reasoning of that answer is bound to another view.
func (v *View) Unbinds(p int) bool {
	for i := range v.Applied {
		if c := &v.Applied[i]; p <= c.Stripped && p >= v.firstUnbound(c) {
			return true
		}
	}
	return false
}

// firstUnbound returns the first position before which c changes something.
func (v *View) firstUnbound(c *Condensation) int {
	first := math.MaxInt
	if len(c.Forgotten) > 0 {
		first = c.Forgotten[0].From
	}
	if len(c.Trims) > 0 {
		first = min(first, c.Trims[0].Pos+1)
	}
	if c.Changed > 0 {
		first = min(first, c.Changed) // not c.Changed+1: the message there may have followed messages that were left out
	}
	if c.Summary != "" || c.SummaryTokens > 0 {
		return min(first, c.Offset)
	}
	for i := range v.Applied {
		if a := &v.Applied[i]; a.Added > 0 && c.Hides(a.Added) {
			return 1 // the added text moves to another message, which may be any
		}
	}
	return first
}

// Summary returns the condensation whose summary the view shows: the newest that has one. It returns nil if there is none.
func (v *View) Summary() *Condensation { return summaryOf(v.Applied) }

func summaryOf(applied []Condensation) *Condensation {
	for i := range slices.Backward(applied) {
		c := &applied[i]
		if c.Added == 0 && (c.SummaryTokens > 0 || c.Summary != "") {
			return c
		}
	}
	return nil
}

// Forgotten reports for each position whether the view leaves it out. Entry 0 is unused.
func (v *View) Forgotten() []bool {
	gone := make([]bool, v.History.Len()+1)
	for _, c := range v.Applied {
		for _, r := range c.Forgotten {
			for p := r.From; p < r.To && p < len(gone); p++ {
				gone[p] = true
			}
		}
	}
	return gone
}

// Project returns the view of a history under those condensations of its thread that apply. It shows only the newest summary, which covers
// everything forgotten, because each summary is made from the one before it.
func Project(h *History, condensations []Condensation) View {
	v := View{History: h, Applied: Applicable(h, condensations)}
	gone, summary, trims := v.Forgotten(), v.Summary(), map[int]*Trim{}
	shown := len(h.Messages) + 1 // at most
	for _, hidden := range gone {
		if hidden {
			shown--
		}
	}
	v.Items = make([]Item, 0, shown)
	for i := range v.Applied {
		for j := range v.Applied[i].Trims {
			t := &v.Applied[i].Trims[j]
			trims[t.Pos] = t // a later trim of the same message shows less
		}
	}
	replaced, last := h.Replaced(), 0 // last is the newest position so far
	for i := range h.Messages {
		p := h.Pos(i)
		if summary != nil && p == summary.Offset {
			v.Items = append(v.Items, Item{Index: -1, Summary: summary.Summary, Kind: User})
		}
		if last = max(last, p); gone[last] && (p > 0 || replaced != nil && replaced[i]) {
			continue
		}
		m := &h.Messages[i]
		v.Items = append(v.Items, Item{Index: i, Raw: m.Raw, Kind: m.Kind, Trim: trims[p], Strip: m.Sealed && v.Unbinds(p)})
	}
	for i := range v.Applied {
		if c := &v.Applied[i]; c.Added > 0 {
			v.add(c)
		}
	}
	return v
}

// add adds the text of an addition to the message that it was made for. If that message is hidden, it adds the text to the summary or, if
// there is none, to a user message that is shown: the last one before the hidden message, otherwise the first.
func (v *View) add(c *Condensation) {
	index, fallback := v.History.At(c.Added), -1
	for i := range v.Items {
		item := &v.Items[i]
		switch {
		case item.Index < 0:
			fallback = i
		case item.Index == index:
			item.Added += c.Summary
			return
		case item.Kind == User && (fallback < 0 || v.Items[fallback].Index >= 0 && item.Index < index):
			fallback = i
		}
	}
	if fallback >= 0 {
		v.Items[fallback].Added += c.Summary
	}
}

// Text returns the text of the message that shows a summary.
func (i *Item) Text() string { return i.Summary + i.Added }
