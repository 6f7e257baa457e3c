package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// LastSealed is the last position whose message carries sealed reasoning, 0 if none does. A condensation changes what such
// reasoning was bound to, so from then on it is left out of every message up to there. What the model answers afterwards is
// bound to the condensed prefix, and stays.
func LastSealed(h *session.History) int {
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Sealed {
			return p
		}
	}
	return 0
}

// Loop is where the open tool loop begins that upstream takes only with the reasoning in it, 0 if there is none. Texts of the user
// next to tool results do not end a loop.
func (in Input) Loop() int {
	if !in.NeedsReasoning {
		return 0
	}
	h, results, said, sealed := in.View.History, false, false, false
	p := h.Len()
	for ; p > 0; p-- {
		m := h.Message(p)
		if m.Kind == session.User || m.Kind == session.Observation {
			results, said = m.Kind == session.Observation || results && !said, false
			continue
		}
		if !results {
			break
		}
		said, sealed = true, sealed || m.Sealed
	}
	if !sealed {
		return 0
	}
	return p + 1
}

// Waits reports whether a condensation has to wait for the end of the open tool loop.
func (in Input) Waits() bool { return in.Loop() > 0 }

// Began is the input of the request that an open tool loop began with, to whose view the loop's answers are bound, and the items that came
// since. It reports false where there is no loop that needs its reasoning, or none of that is shown.
func (in Input) Began() (began Input, since []session.Item, open bool) {
	h, from := in.View.History, in.Loop()
	if from == 0 {
		return in, nil, false
	}
	for i, item := range in.View.Items {
		if item.Index < 0 || item.Strip || h.Pos(item.Index) < from || !h.Messages[item.Index].Sealed {
			continue
		}
		began = in
		began.View = &session.View{
			History: session.NewHistory(h.Chain[0], h.Messages[:item.Index]), Applied: in.View.Applied, Items: in.View.Items[:i:i],
		}
		began.Total = in.Fixed + total(in.Measure(began.View.Items))
		return began, in.View.Items[i:], true
	}
	return in, nil, false
}
