package session

import (
	"context"
	"slices"
)

const (
	// newestAnswers is how many traces of a history's newest answers are stored and looked up without gaps, to find a thread's predecessor.
	// Before these, only answers in the sample are, and the distance between those that are looked up doubles each time.
	newestAnswers = 16

	// maxPredecessors is how many threads with such answers are compared. There may be several, because side requests and sub-agents log
	// the same answers.
	maxPredecessors = 3
)

// answerTrace returns the trace of an answer's whole message. By it, an answer without a unique call is found in its session.
func answerTrace(h *History, id SessionID, m *Message) Hash {
	return trace(h.Chain[0], 'm', string(id)+string(m.Digest[:]))
}

// answerClues returns the clues to find the answer at position p in its session. Other messages have none.
func answerClues(h *History, id SessionID, p int) []clue {
	m := h.Message(p)
	if m.Kind.ByModel() && !h.callsUnique(m) {
		return []clue{{answerTrace(h, id, m)}}
	}
	return h.callClues(p)
}

// predecessors returns up to maxPredecessors threads of t's session that may be t's predecessor, newest answer first. t is new; a candidate
// is the last thread that logged an answer which t's history contains after the positions shared with t's parent.
func (r *Registry) predecessors(ctx context.Context, h *History, t *Thread) (ids []ThreadID, err error) {
	var clues []clue
	for p, next, step := h.Len(), h.Len(), 1; p > t.ForkAt; p-- {
		newest := len(clues) < newestAnswers
		if p > next || !newest && !h.Message(p).sampled() {
			continue
		}
		clues = append(clues, answerClues(h, t.Session, p)...)
		if !newest {
			step *= 2
		}
		next = p - step
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

// follow finds the predecessor of a new thread, and sets t.Follows or t.Parent, t.Condensations and t.Lost accordingly. A client that edits an
// early message or leaves the oldest ones out at each step begins a thread with each request. The predecessor of each of these threads is the
// one before it, even if another thread has the longest known prefix. The caller has set t.Condensations to what carryOver finds in the
// parent; parent is nil if there is none.
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
		further := lastHidden(carried) > lastHidden(t.Condensations) || len(carried) > 0 && len(t.Condensations) == 0 // which may hide nothing
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

// lost returns Origin.Lost of a thread whose predecessor is one of others, and which has carried over the given condensations. It is 0 if the
// newest summary of one of the others was carried over.
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
