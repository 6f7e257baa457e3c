package session

// Item is one message of a view.
type Item struct {
	Index   int    // of the message in the history, -1 for a summary
	Raw     []byte // what goes upstream; nil for a summary, whose raw form is the dialect's business
	Summary string // text of a summary
	Kind    Kind
	Trim    *Trim  // show only this much of the text, nil: all of it. The dialect rewrites Raw by it
	Strip   bool   // show it without its sealed reasoning, likewise
	Added   string // text to be added at its end, likewise

	Parts [][]byte // messages that go upstream in its place; nil: Raw does
}

// View is the messages that go upstream. It is never stored: History and condensations give it again.
type View struct {
	History *History
	Applied []Condensation // that shaped it, oldest first
	Items   []Item
}

// Identity reports whether the view is the history as the client sent it, byte for byte.
func (v *View) Identity() bool {
	if len(v.Items) != len(v.History.Messages) {
		return false
	}
	for i := range v.Items {
		own := v.History.Messages[i].Raw
		if v.Items[i].Index != i || v.Items[i].Trim != nil || v.Items[i].Strip || v.Items[i].Parts != nil || v.Items[i].Added != "" || len(v.Items[i].Raw) != len(own) || &v.Items[i].Raw[0] != &own[0] {
			return false
		}
	}
	return true
}

// Summary is the condensation whose summary the view shows: the newest that made one. Nil if none did.
func (v *View) Summary() *Condensation { return summaryOf(v.Applied) }

func summaryOf(applied []Condensation) *Condensation {
	for i := len(applied) - 1; i >= 0; i-- {
		if applied[i].Added == 0 && (applied[i].SummaryTokens > 0 || applied[i].Summary != "") {
			return &applied[i]
		}
	}
	return nil
}

// Forgotten tells, by position (1-based; entry 0 is unused), what the view leaves out.
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

// Project gives the view of h under those of its thread's condensations that apply. The newest one's summary stands for
// everything forgotten, since each summary was made from the one before it.
func Project(h *History, condensations []Condensation) View {
	applied := Applicable(h, condensations)
	v := View{History: h, Applied: applied, Items: make([]Item, 0, len(h.Messages)+1)}
	gone := forgotten(h.Len(), applied)
	summary := v.Summary()
	trims, bare := trimmed(applied), stripped(applied)
	for i := range h.Messages {
		p := h.Pos(i)
		if summary != nil && p == summary.Offset {
			v.Items = append(v.Items, Item{Index: -1, Summary: summary.Summary, Kind: User})
		}
		if p > 0 && gone[p] {
			continue
		}
		m := &h.Messages[i]
		v.Items = append(v.Items, Item{Index: i, Raw: m.Raw, Kind: m.Kind, Trim: trims[p], Strip: m.Sealed && p <= bare})
	}
	for i := range applied {
		v.add(&applied[i])
	}
	return v
}

// add shows an added text where it was added; where that is hidden, with the summary, or else with a user's message that is shown: the last
// before it, or the first. What is about a message that is hidden is hidden with it.
func (v *View) add(c *Condensation) {
	if c.Added == 0 {
		return
	}
	at := -1
	for i := range v.Items {
		item := &v.Items[i]
		switch {
		case item.Index < 0:
			at = i
		case item.Index == v.History.At(c.Added):
			item.Added += c.Summary
			return
		case item.Kind == User && (at < 0 || v.Items[at].Index >= 0 && item.Index < v.History.At(c.Added)):
			at = i
		}
	}
	if at >= 0 && c.Reason != ReasonRepeated {
		v.Items[at].Added += c.Summary
	}
}

// Text is what the message says that carries a summary.
func (i *Item) Text() string { return i.Summary + i.Added }

// stripped is the last position whose sealed reasoning is left out, 0 if none is.
func stripped(applied []Condensation) int {
	last := 0
	for i := range applied {
		last = max(last, applied[i].Stripped)
	}
	return last
}

// trimmed gives the trims by position; nil if there are none.
func trimmed(applied []Condensation) map[int]*Trim {
	var out map[int]*Trim
	for i := range applied {
		for j := range applied[i].Trims {
			t := &applied[i].Trims[j]
			if out == nil {
				out = map[int]*Trim{}
			}
			out[t.Pos] = t // one that was trimmed again shows less
		}
	}
	return out
}
