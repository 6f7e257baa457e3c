package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// Loop returns the position at which the open tool loop begins that upstream accepts only with its reasoning, or 0 if there
// is none. User texts next to tool results do not end a loop.
func (in Input) Loop() int {
	if !in.NeedsReasoning {
		return 0
	}
	h := in.View.History
	results := false // the run of user and tool messages behind p includes a tool result
	answer := false  // the message behind p is an assistant message
	sealed := false
	p := h.Len()
	for ; p > 0; p-- {
		m := h.Message(p)
		if m.Kind == session.User || m.Kind == session.Observation {
			results = m.Kind == session.Observation || results && !answer
			answer = false
			continue
		}
		if !results {
			break
		}
		answer = true
		sealed = sealed || m.Sealed
	}
	if !sealed {
		return 0
	}
	return p + 1
}

// LoopStart returns the input of the request with which the open tool loop began, to whose view the loop's answers are
// bound, and the items since then. It reports false if no open loop needs its reasoning, or none of that is shown.
func (in Input) LoopStart() (start Input, since []session.Item, open bool) {
	h := in.View.History
	from := in.Loop()
	if from == 0 {
		return in, nil, false
	}
	for i, item := range in.View.Items {
		if item.Index < 0 || item.Strip || item.Loose || h.Pos(item.Index) < from || !h.Messages[item.Index].Sealed {
			continue
		}
		start = in
		start.View = &session.View{
			History: session.NewHistory(h.Chain[0], h.Messages[:item.Index]),
			Applied: in.View.Applied,
			Items:   in.View.Items[:i:i],
		}
		start.Total = in.Fixed + total(in.Measure(start.View.Items))
		return start, in.View.Items[i:], true
	}
	return in, nil, false
}
