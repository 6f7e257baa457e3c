package session

import "slices"

// Item is one message of a view.
type Item struct {
	Index   int    // of the message in the history, -1 for a summary
	Raw     []byte // the bytes that go upstream; nil for a summary, which the dialect writes
	Summary string // text of a summary
	Kind    Kind

	// The dialect applies these changes to Raw.
	Trim  *Trim  // how much of the text to show, nil for all of it
	Strip bool   // leave out sealed reasoning
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
	if len(v.Items) != len(v.History.Messages) {
		return false
	}
	for i := range v.Items {
		item, raw := &v.Items[i], v.History.Messages[i].Raw
		if item.Index != i || item.Trim != nil || item.Strip || item.Added != "" || item.Parts != nil {
			return false
		}
		if len(item.Raw) != len(raw) || &item.Raw[0] != &raw[0] {
			return false
		}
	}
	return true
}

// Summary returns the condensation whose summary the view shows: the newest that has one, nil if none does.
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
func (v *View) Forgotten() []bool { return forgotten(v.History.Len(), v.Applied) }

func forgotten(n int, applied []Condensation) []bool {
	gone := make([]bool, n+1)
	for _, c := range applied {
		for _, r := range c.Forgotten {
			for p := r.From; p < r.To && p <= n; p++ {
				gone[p] = true
			}
		}
	}
	return gone
}

// Project returns the view of a history under those condensations of its thread that apply. The newest summary stands for
// everything forgotten, because each summary is made from the one before it.
func Project(h *History, condensations []Condensation) View {
	applied := Applicable(h, condensations)
	v := View{History: h, Applied: applied, Items: make([]Item, 0, len(h.Messages)+1)}
	gone := forgotten(h.Len(), applied)
	summary := v.Summary()
	trims, stripped := trimsByPosition(applied), lastStripped(applied)
	for i := range h.Messages {
		p := h.Pos(i)
		if summary != nil && p == summary.Offset {
			v.Items = append(v.Items, Item{Index: -1, Summary: summary.Summary, Kind: User})
		}
		if p > 0 && gone[p] {
			continue
		}
		m := &h.Messages[i]
		v.Items = append(v.Items, Item{Index: i, Raw: m.Raw, Kind: m.Kind, Trim: trims[p], Strip: m.Sealed && p <= stripped})
	}
	for i := range applied {
		if applied[i].Added > 0 {
			v.add(&applied[i])
		}
	}
	return v
}

// add shows an added text with the message that it was added to. If that is hidden, the text goes to the summary, or
// without one to a user message that is shown: the last before the hidden one, or else the first. A note about a repeated
// call is hidden with its message.
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
	if fallback >= 0 && c.Reason != ReasonRepeated {
		v.Items[fallback].Added += c.Summary
	}
}

// Text returns the text of the message that shows a summary.
func (i *Item) Text() string { return i.Summary + i.Added }

// lastStripped returns the last position whose sealed reasoning is left out, 0 if there is none.
func lastStripped(applied []Condensation) int {
	last := 0
	for i := range applied {
		last = max(last, applied[i].Stripped)
	}
	return last
}

// trimsByPosition returns nil if there are no trims.
func trimsByPosition(applied []Condensation) map[int]*Trim {
	var trims map[int]*Trim
	for i := range applied {
		for j := range applied[i].Trims {
			t := &applied[i].Trims[j]
			if trims == nil {
				trims = map[int]*Trim{}
			}
			trims[t.Pos] = t // a later trim of the same message shows less
		}
	}
	return trims
}
