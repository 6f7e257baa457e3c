package session

import (
	"context"
	"slices"
)

const (
	// newestAnswers is how many traces of a history's newest answers are looked up one after the other, to find the thread that it
	// goes on from. The distance to each further one doubles.
	newestAnswers = 16

	// maxPredecessors is how many threads with such answers are compared. Side requests and sub-agents may have logged the same ones.
	maxPredecessors = 3
)

// answerTrace returns the trace of the whole message, by which an answer of the model without a unique call is found in its session.
func answerTrace(h *History, id SessionID, m *Message) Hash {
	return trace(h.Chain[0], 'm', string(id)+string(m.Digest[:]))
}

// answerClues returns what to look up to find an answer of the model at a position in its session, none for other messages.
func answerClues(h *History, id SessionID, p int) []clue {
	m := h.Message(p)
	if m.Kind.ByModel() && !h.callsUnique(m) {
		return []clue{{answerTrace(h, id, m)}}
	}
	return h.callClues(p)
}

// predecessors returns the threads of t's session that last logged answers which the history of the new thread t has after the
// positions shared with its parent, newest answer first.
func (r *Registry) predecessors(ctx context.Context, h *History, t *Thread) (ids []ThreadID, err error) {
	var clues []clue
	for p, step := h.Len(), 1; p > t.ForkAt; p -= step {
		clues = append(clues, answerClues(h, t.Session, p)...)
		if len(clues) >= newestAnswers {
			step *= 2
		}
	}
	places, err := r.readClues(ctx, clues)
	for _, p := range places {
		known := p.Session == t.Session && p.Pos > t.ForkAt && p.Thread != t.ID
		if known && len(ids) < maxPredecessors && !slices.Contains(ids, p.Thread) {
			ids = append(ids, p.Thread)
		}
	}
	return ids, err
}

// follow makes a new thread go on from its predecessor. A client that edits an early message or leaves the oldest ones out at each
// step begins a thread with each request, and each goes on from the one before, wherever the longest known prefix is. The thread has
// the condensations that carryOver finds in its parent, nil if there is none.
func (r *Registry) follow(ctx context.Context, h *History, t, parent *Thread) error {
	ids, err := r.predecessors(ctx, h, t)
	if err != nil {
		return err
	}
	var followed *Thread
	var compared []*Thread
	for _, id := range ids {
		before := parent
		if id != t.Parent {
			if before, err = r.readThread(ctx, id); err != nil {
				return err
			}
		}
		if before == nil || before.Purpose != t.Purpose {
			continue
		}
		if before == parent {
			break
		}
		shared := 0
		if before.Parent == t.Parent {
			shared = min(before.ForkAt, t.ForkAt)
		}
		carried := r.carry(ctx, h, before, before.Condensations, shared)
		further := lastHidden(carried) > lastHidden(t.Condensations) || len(carried) > 0 && len(t.Condensations) == 0 // they may only trim
		if further {
			t.Condensations = carried
		}
		if further || followed == nil {
			followed = before
		}
		compared = append(compared, before)
	}
	if parent != nil && (followed == nil || t.ForkAt == 0) && parent.Purpose == t.Purpose {
		compared = append(compared, parent)
	}
	switch {
	case followed == nil && parent != nil:
		t.Condensations = r.carry(ctx, h, parent, parent.Condensations, t.ForkAt)
	case followed != nil && t.Parent == "":
		t.Parent = followed.ID
	case followed != nil:
		t.Follows = followed.ID
	}
	t.Lost = lost(compared, t.Condensations)
	return nil
}

// lost returns Origin.Lost of a thread that goes on from one of some others, with these condensations. It is 0 if the newest summary of
// any of them is among those.
func lost(others []*Thread, carried []Condensation) (n int) {
	for _, t := range others {
		newest := summaryOf(t.Condensations)
		switch {
		case newest == nil:
			n = max(n, t.Lost)
		case slices.ContainsFunc(carried, func(c Condensation) bool { return c.ID == newest.ID }):
			return 0
		default:
			n = max(n, t.Lost+1)
		}
	}
	return n
}

// lastHidden returns the last position that condensations hide, 0 if they hide none.
func lastHidden(all []Condensation) (last int) {
	for _, c := range all {
		if n := len(c.Forgotten); n > 0 {
			last = max(last, c.Forgotten[n-1].To-1)
		}
	}
	return last
}
