package session

import (
	"context"
	"fmt"
	"slices"
)

// verifyFork checks that a history without a session key which forks a known thread belongs to the thread's conversation. Many runs begin
// with the same instructions or examples and get the same first answers, so a shared prefix is not enough. The history belongs to the
// conversation if one of these is true:
//
//   - The shared prefix has a call with a unique id and its result.
//   - The shared prefix has the history's newest answer, which was relayed, and the next message is not a tool result that differs from the
//     thread's.
//   - The rest of the history contains something that was relayed in the thread's session later.
//
// Otherwise res.Match becomes MatchNone. verifyFork returns the thread to use. It is not the given one if another thread got the shared
// answer last and the history continues that thread at its end.
func (r *Registry) verifyFork(ctx context.Context, q *Query, res *Resolution, thread *Thread) (*Thread, error) {
	if q.Scope.Key != "" || res.Match != MatchInside {
		return thread, nil
	}
	proven, err := r.provenByCall(ctx, q.History, res.Logged)
	if proven || err != nil {
		return thread, err
	}
	answered, err := r.lastAnswered(ctx, q.History, res.Logged, thread)
	if err != nil {
		return nil, err
	}
	if answered.Known() && q.History.lastByModel() <= res.Logged {
		sibling, err := r.preferSibling(ctx, q.History, res, thread, answered.Thread)
		if err != nil || sibling != thread {
			return sibling, err
		}
		other, err := r.hasAnotherResult(ctx, q.History, res.Logged+1, thread)
		if err != nil || !other {
			return thread, err
		}
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

// newestCalls is how many calls of a shared prefix, the newest, are looked up to prove that it belongs to one run.
const newestCalls = 4

// provenByCall reports whether the first n messages contain a call with its result that identifies their run.
func (r *Registry) provenByCall(ctx context.Context, h *History, n int) (bool, error) {
	var clues []clue
	for p := n - 1; p > 0 && len(clues) < newestCalls; p-- {
		for _, id := range h.Message(p).Calls {
			if at := h.resultOf(p, id); at > 0 && at <= n && h.identifies(id) {
				clues = append(clues, callClue(h.Chain[0], id, h.Message(at)))
			}
		}
	}
	places, err := r.readClues(ctx, clues)
	return slices.ContainsFunc(places, Place.Known), err
}

// hasAnotherResult reports whether the history and the thread have different tool results at position p. If two runs begin with the same
// messages and get the same answers, this is where they differ.
func (r *Registry) hasAnotherResult(ctx context.Context, h *History, p int, t *Thread) (bool, error) {
	if h.Message(p).Kind != Observation {
		return false, nil
	}
	events, err := r.eventsAt(ctx, t.ID, p)
	if err != nil {
		return false, err
	}
	return len(events) > 0 && events[0].Kind == Observation && events[0].Digest != h.Message(p).Digest, nil
}

// lastByModel returns the position of the newest answer, 0 if there is none.
func (h *History) lastByModel() int {
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Kind.ByModel() {
			return p
		}
	}
	return 0
}

// lastAnswered returns where the newest answer among the first n messages, which the history shares with t, was last relayed, zero if it was
// not.
func (r *Registry) lastAnswered(ctx context.Context, h *History, n int, t *Thread) (Place, error) {
	for p := n; p > 0; p-- {
		if h.Message(p).Kind.ByModel() {
			places, err := r.readTraces(ctx, []Hash{AnsweredTrace(h.Chain[p-1])})
			if err != nil || places[0].Known() {
				return places[0], err
			}
			answered, err := r.answeredAt(ctx, t, p-1)
			if err != nil || !answered {
				return Place{}, err
			}
			return Place{Thread: t.ID, Session: t.Session, Pos: p - 1}, nil
		}
	}
	return Place{}, nil
}

// answeredAt reports whether a thread, or the ancestor that logged its position p, noted an answer to the history up to there.
func (r *Registry) answeredAt(ctx context.Context, t *Thread, p int) (bool, error) {
	for n := 0; t != nil && t.ForkAt >= p && t.Parent != "" && n < maxLogThreads; n++ {
		parent, err := r.readThread(ctx, t.Parent)
		if err != nil {
			return false, err
		}
		t = parent
	}
	if t == nil {
		return false, nil
	}
	answers, err := r.store.Answers(ctx, t.ID)
	if err != nil {
		return false, fmt.Errorf("read answers: %w", err)
	}
	return slices.ContainsFunc(answers, func(a Answer) bool { return a.Pos == p }), nil
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
