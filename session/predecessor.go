package session

import "context"

// maxAnswers is how many of a history's newest answers are looked up to find the thread that it goes on from.
const maxAnswers = 32

// answerTraces returns the traces by which an answer of the model is found in its session: the ids of its calls or, if none is
// unique, the whole message. It returns none for other messages.
func answerTraces(h *History, id SessionID, m *Message) []Hash {
	traces := CallTraces(h.Chain[0], m.Calls)
	if len(traces) == 0 && m.Kind.ByModel() {
		traces = append(traces, trace(h.Chain[0], 'm', string(id)+string(m.Digest[:])))
	}
	return traces
}

// predecessor returns the thread of a session that last logged the newest known answer of a history after its first shared
// positions, nil if there is none. A client that edits an early message at each step begins a thread with each request, and
// each goes on from the one before, wherever the longest known prefix is.
func (r *Registry) predecessor(ctx context.Context, id SessionID, h *History, shared int) (*Thread, error) {
	var traces []Hash
	for p := h.Len(); p > shared && len(traces) < maxAnswers; p-- {
		traces = append(traces, answerTraces(h, id, h.Message(p))...)
	}
	if len(traces) == 0 {
		return nil, nil
	}
	places, err := r.readTraces(ctx, traces)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if p.Session == id && p.Pos > shared {
			return r.readThread(ctx, p.Thread)
		}
	}
	return nil, nil
}

// follow makes a new thread go on from its predecessor, if that is not its parent.
func (r *Registry) follow(ctx context.Context, h *History, t *Thread) error {
	before, err := r.predecessor(ctx, t.Session, h, t.ForkAt)
	if err != nil || before == nil || before.ID == t.Parent {
		return err
	}
	shared := 0
	if t.Parent == "" {
		t.Parent = before.ID
	} else {
		t.Follows = before.ID
		if before.Parent == t.Parent {
			shared = min(before.ForkAt, t.ForkAt)
		}
	}
	if carried := carryOver(h, before.Condensations, shared); reach(carried) > reach(t.Condensations) {
		t.Condensations = carried
	}
	return nil
}

// reach returns the last position that condensations apply to.
func reach(all []Condensation) (last int) {
	for _, c := range all {
		last = max(last, c.Prefix)
	}
	return last
}
