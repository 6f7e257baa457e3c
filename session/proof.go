package session

import (
	"context"
	"slices"
)

// proven makes sure that a history which leaves a known thread belongs to its conversation: many runs begin with the same
// instructions or examples. It does if what they share holds a call of its own or an answer that was relayed, or if something that
// was relayed later stands in it. Otherwise it matches nothing. The thread that it gives may be another one, which was the last to get that answer
// and went no further.
func (r *Registry) proven(ctx context.Context, q *Query, res *Resolution, thread *Thread) (*Thread, error) {
	if q.Scope.Key != "" || res.Match != MatchInside || calls(q.History, res.Logged) {
		return thread, nil
	}
	answered, err := r.lastAnswered(ctx, q.History, res.Logged)
	switch {
	case err != nil:
		return nil, err
	case answered.Known():
		return r.sibling(ctx, q, res, thread, answered.Thread)
	}
	q.apart = Place{Thread: thread.ID, Pos: res.Logged}
	linked, err := r.linked(ctx, *q)
	if err != nil {
		return nil, err
	}
	if linked.Session != thread.Session {
		res.Match = MatchNone
	}
	return thread, nil
}

// calls reports whether there is a call with a unique id among the first messages of a history.
func calls(h *History, among int) bool {
	for p := among; p > 0; p-- {
		if slices.ContainsFunc(h.Message(p).Calls, unique) {
			return true
		}
	}
	return false
}

// lastAnswered is where the newest answer among the first messages of a history was last relayed, if it was.
func (r *Registry) lastAnswered(ctx context.Context, h *History, among int) (Place, error) {
	for p := among; p > 0; p-- {
		if kind := h.Message(p).Kind; kind == Agent || kind == Action {
			places, err := r.trace(ctx, []Hash{AnsweredTrace(h.Chain[p-1])})
			if err != nil {
				return Place{}, err
			}
			return places[0], nil
		}
	}
	return Place{}, nil
}

// sibling is the thread of that id if the history goes on from its end, else the one that it was found in.
func (r *Registry) sibling(ctx context.Context, q *Query, res *Resolution, found *Thread, id ThreadID) (*Thread, error) {
	if id == found.ID {
		return found, nil
	}
	thread, err := r.known(ctx, id)
	if err != nil || thread == nil || !q.History.Covers(thread.Len, thread.Head) {
		return found, err
	}
	res.Match, res.Logged = MatchEnd, thread.Len
	return thread, nil
}
