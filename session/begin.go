package session

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// beginThread resolves a history that matched no thread: it begins one, in the session that its key, its parent's key or
// its traces name, or in a new session.
func (r *Registry) beginThread(ctx context.Context, q Query, res *Resolution) error {
	id, session, namesake, err := r.newIDs(ctx, q)
	if err != nil {
		return err
	}
	resumed, err := r.resumeUnindexed(ctx, q, res, namesake)
	if resumed || err != nil {
		return err
	}
	link, err := r.findLink(ctx, q)
	if err != nil {
		return err
	}
	now := time.Now()
	t := Thread{
		ID: id, Tenant: q.Scope.Tenant, Purpose: q.Purpose, Dialect: q.Dialect, Head: q.History.Chain[0], Created: now, Seen: now,
	}
	var linked *Thread
	if link.Known() {
		if linked, err = r.readThread(ctx, link.Thread); err != nil {
			return err
		}
		if linked != nil && linked.Len == 0 && link.Pos == 0 {
			// The thread answered a request that was only a system prompt. The history begins with that answer.
			res.Thread, res.Match, res.Source, res.Known = *linked, MatchEnd, SourceTrace, Place{}
			return nil
		}
	}
	keyed, known, caller, err := r.sessionOfKey(ctx, q)
	if err != nil {
		return err
	}
	switch {
	case keyed != "":
		t.Session, t.Caller, res.Begins = keyed, caller, !known
		if link.Session == keyed {
			t.Parent = link.Thread
		}
	case link.Known():
		t.Session, t.Parent = link.Session, link.Thread
		res.Source = SourceTrace
	default:
		t.Session, res.Begins = session, true
	}
	if linked != nil {
		t.Condensations = r.carryOver(ctx, q.History, linked.Condensations, 0)
	}
	if !res.Begins {
		if err := r.follow(ctx, q.History, &t, linked); err != nil {
			return err
		}
	}
	res.Thread, res.New, res.Logged, res.Known = t, true, 0, Place{}
	return nil
}

// newIDs returns ids for a new thread and its session. They are derived from the beginning of the history, so that two replicas, or one
// replica that lost its last writes, choose the same ids for the same history. If a thread with the derived id exists, newIDs returns it
// as namesake, and random ids.
func (r *Registry) newIDs(ctx context.Context, q Query) (thread ThreadID, session SessionID, namesake *Thread, err error) {
	thread, session = ThreadID(newID()), SessionID(newID()[:24])
	if q.randomNames || q.History.Len() == 0 {
		return thread, session, nil, nil
	}
	derived, namesake := derivedID(q.History), q.lookup.namesake
	if !q.lookup.namesakeRead {
		namesake, err = r.readThread(ctx, derived)
	}
	if namesake == nil {
		thread, session = derived, SessionID(trace(q.History.Chain[1], 'S', "").String()[:24])
	}
	return thread, session, namesake, err
}

// derivedID returns the id of a new thread for a history, which must not be empty.
func derivedID(h *History) ThreadID { return ThreadID(trace(h.Chain[1], 'T', "").String()[:32]) }

// resumeUnindexed continues the namesake, the thread with the history's derived id, if nothing of the history is indexed although it
// begins with all messages of that thread. In that case the append to the namesake was interrupted before it wrote the index, or is still
// in progress. If the history has no session key, consists only of opening messages, and was answered already, it is another conversation
// that begins with the same words, and does not continue the namesake.
func (r *Registry) resumeUnindexed(ctx context.Context, q Query, res *Resolution, namesake *Thread) (bool, error) {
	if namesake == nil || res.Known.Known() || !q.History.Covers(namesake.Len, namesake.Head) {
		return false, nil
	}
	if q.Scope.Key == "" && onlyOpening(q.History) {
		answered, err := r.answered(ctx, q)
		if answered || err != nil {
			return false, err
		}
	}
	res.Thread, res.Match, res.Source, res.Logged = *namesake, MatchEnd, SourcePrefix, namesake.Len
	return true, nil
}

// sessionOfKey returns the session of the client's session key and whether the session exists. The id is empty if the client sent no key.
// If the client also named a parent and the session does not exist yet, the id is derived from the parent's key. caller is the newest
// thread of the parent's key if it is in the same session, otherwise empty.
func (r *Registry) sessionOfKey(ctx context.Context, q Query) (id SessionID, known bool, caller ThreadID, err error) {
	if q.Scope.Key == "" {
		return "", false, "", nil
	}
	places, err := r.traced(ctx, q.lookup, r.keyTraces(q))
	if err != nil {
		return "", false, "", err
	}
	i := slices.IndexFunc(places, Place.Known)
	if i < 0 {
		return r.secret.SessionID(q.parentScope()), false, "", nil
	}
	if parent := places[len(places)-1]; q.Parent != "" && parent.Session == places[i].Session {
		caller = parent.Thread
	}
	return places[i].Session, true, caller, nil
}

// keyTraces returns the traces that remember the session of the client's session key and of its parent's key.
func (r *Registry) keyTraces(q Query) []Hash {
	traces := []Hash{KeyTrace(q.History.Chain[0])}
	if q.Parent != "" {
		traces = append(traces, KeyTrace(r.secret.Seed(q.parentScope())))
	}
	return traces
}

// parentScope returns the query's scope with the parent's session key, if the client named a parent.
func (q Query) parentScope() Scope {
	scope := q.Scope
	scope.Key = cmp.Or(q.Parent, scope.Key)
	return scope
}

// findLink returns a place in the thread that left most of the traces in the history. The messages that the history shares
// with q.unproven, and the traces that this thread left there, do not count.
func (r *Registry) findLink(ctx context.Context, q Query) (Place, error) {
	var texts []string
	if q.Texts != nil {
		texts = q.Texts()
	}
	clues := textClues(q.History.Chain[0], texts, q.Purpose)
	var calls []clue
	for p := q.History.Len(); p > q.unproven.Pos && len(calls) < maxReadCalls; p-- {
		calls = append(calls, q.History.callClues(p)...)
	}
	slices.Reverse(calls) // of threads with as many clues each, the one that the history has from first counts
	clues = append(clues, calls...)
	places, err := r.readClues(ctx, clues)
	if err != nil {
		return Place{}, err
	}
	votes := map[ThreadID]int{}
	var best Place
	for _, p := range places {
		if !p.Known() || p.Thread == q.unproven.Thread && p.Pos <= q.unproven.Pos {
			continue
		}
		votes[p.Thread]++
		if votes[p.Thread] > votes[best.Thread] {
			best = p
		}
	}
	return best, nil
}
