package session

import (
	"context"
	"slices"
)

// verifyFork checks that a history which leaves a known thread belongs to the same conversation: many runs begin with the
// same instructions or examples. The history belongs to it if the shared prefix holds a unique call or an answer that was
// relayed, or if the rest of the history holds something that was relayed in that session later. Otherwise the match
// becomes MatchNone. The thread that verifyFork returns differs from the given one if another thread was the last to get
// the shared answer and ends there.
func (r *Registry) verifyFork(ctx context.Context, q *Query, res *Resolution, thread *Thread) (*Thread, error) {
	if q.Scope.Key != "" || res.Match != MatchInside || hasUniqueCall(q.History, res.Logged) {
		return thread, nil
	}
	answered, err := r.lastAnswered(ctx, q.History, res.Logged)
	if err != nil {
		return nil, err
	}
	if answered.Known() {
		return r.preferSibling(ctx, q.History, res, thread, answered.Thread)
	}
	q.unproven = Place{Thread: thread.ID, Pos: res.Logged}
	link, err := r.findLink(ctx, *q)
	if err != nil {
		return nil, err
	}
	if link.Session != thread.Session {
		res.Match = MatchNone
	}
	return thread, nil
}

// hasUniqueCall reports whether the first n messages include a call with a unique id.
func hasUniqueCall(h *History, n int) bool {
	return slices.ContainsFunc(h.Messages[:h.At(n)+1], func(m Message) bool { return slices.ContainsFunc(m.Calls, unique) })
}

// lastAnswered returns where the newest answer among the first n messages was last relayed, zero if it was not.
func (r *Registry) lastAnswered(ctx context.Context, h *History, n int) (Place, error) {
	for p := n; p > 0; p-- {
		if h.Message(p).Kind.ByModel() {
			places, err := r.readTraces(ctx, []Hash{AnsweredTrace(h.Chain[p-1])})
			if err != nil {
				return Place{}, err
			}
			return places[0], nil
		}
	}
	return Place{}, nil
}

// preferSibling returns the thread with the given id if the history continues it at its end, and otherwise found.
func (r *Registry) preferSibling(ctx context.Context, h *History, res *Resolution, found *Thread, id ThreadID) (*Thread, error) {
	if id == found.ID {
		return found, nil
	}
	thread, err := r.readThread(ctx, id)
	if err != nil {
		return nil, err
	}
	if thread == nil || !h.Covers(thread.Len, thread.Head) {
		return found, nil
	}
	res.Match, res.Logged = MatchEnd, thread.Len
	return thread, nil
}
