package session

import "context"

// names gives a new thread's name and that of a session of its own. They follow from how the history begins, so that two
// replicas, or one whose last writes were lost, give the same names to the same history; a history that begins like one
// that is known gets others, and the thread that has the names.
func (r *Registry) names(ctx context.Context, q Query) (ThreadID, SessionID, *Thread, error) {
	if q.other || q.History.Len() == 0 {
		return ThreadID(r.newID()), SessionID(r.newID()[:24]), nil, nil
	}
	id, named := nameOf(q.History), q.look.namesake
	if !q.look.named { // it was not asked for before
		var err error
		if named, err = r.known(ctx, id); err != nil {
			return "", "", nil, err
		}
	}
	if named != nil {
		return ThreadID(r.newID()), SessionID(r.newID()[:24]), named, nil
	}
	return id, SessionID(trace(q.History.Chain[1], 'S', "").String()[:24]), nil, nil
}

// nameOf is the name of a thread that begins like a history, which must have a message.
func nameOf(h *History) ThreadID { return ThreadID(trace(h.Chain[1], 'T', "").String()[:32]) }

// unindexed continues the thread that has a history's names if the history, of which nothing is indexed, begins with all
// that it holds: its append was cut short before the index, or comes at this moment. But the same first prompt, answered
// and without a session key, is another conversation.
func (r *Registry) unindexed(ctx context.Context, q Query, res *Resolution, named *Thread) (bool, error) {
	if named == nil || res.Known.Known() || !q.History.Covers(named.Len, named.Head) {
		return false, nil
	}
	if q.Scope.Key == "" && begins(q.History, q.History.Len()) {
		if answered, err := r.answered(ctx, q); answered || err != nil {
			return false, err
		}
	}
	res.Thread, res.Match, res.Source, res.Logged = *named, MatchEnd, SourcePrefix, named.Len
	return true, nil
}
