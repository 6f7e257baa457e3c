package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// lookup is what the store knows of a history. It includes records that will probably be needed next, which the first round trip fetches
// as well.
type lookup struct {
	known  Place   // the longest known prefix
	thread *Thread // the thread that it is in, nil if nothing is known

	namesakeRead bool           // the thread with the history's derived id was read
	namesake     *Thread        // that thread, nil if it does not exist
	traces       map[Hash]Place // the traces that were fetched
}

// lookUp finds the longest known prefix of a history and its thread. The first round trip fetches more records. Which ones depends on
// whether this process has seen the newest chain hashes: if it has not, the records that the first request of a thread needs; if it has
// seen the last one, the trace that says whether the history was answered.
func (r *Registry) lookUp(ctx context.Context, q Query) (_ *lookup, err error) {
	h, l := q.History, &lookup{traces: map[Hash]Place{}}
	pos, hint := r.hint(h)
	unseen := pos == 0
	if unseen && h.Len() > 0 && !q.randomNames {
		hint, l.namesakeRead = derivedID(h), true
	}
	var traces []Hash
	if h.Len() > 0 && (unseen || pos == h.Len()) {
		traces = append(traces, AnsweredTrace(h.Head()))
	}
	if unseen && q.Scope.Key != "" {
		traces = append(traces, r.keyTraces(q)...)
	}
	s := newSearch(h.Len())
	s.wide = unseen
	var hinted *Thread
	for positions := s.next(); positions != nil || hint != "" || len(traces) > 0; positions = s.next() {
		hashes := make([]Hash, len(positions))
		for i, p := range positions {
			hashes[i] = h.Chain[p]
		}
		found, err := r.store.Find(ctx, hashes, hint, traces...)
		if err != nil {
			return nil, fmt.Errorf("find prefix: %w", err)
		}
		hinted = cmp.Or(found.Hinted, hinted)
		for i, p := range found.Traced {
			l.traces[traces[i]] = p
		}
		hint, traces = "", nil
		s.seen(positions, found.Places)
	}
	if l.namesakeRead {
		l.namesake = hinted
	}
	if s.known.Known() {
		l.known, l.thread = s.known, hinted
		if hinted == nil || hinted.ID != s.known.Thread {
			l.thread, err = r.readThread(ctx, s.known.Thread)
		}
	}
	if l.thread == nil {
		l.known = Place{} // the thread has expired
		return l, err
	}
	l.known, err = r.walk(ctx, h, l.thread, l.known)
	return l, err
}

// maxWalked is how many positions walk compares, in case milestones are missing.
const maxWalked = 8 * milestone

// walk returns the end of the longest prefix that a history shares with a thread, of which a shorter one is known. It reads the log if the
// next position is not indexed. The tokens up to the end are then not known.
func (r *Registry) walk(ctx context.Context, h *History, t *Thread, known Place) (Place, error) {
	from := known.Pos
	if t.staysIndexed(from+1) || h.Covers(t.Len, t.Head) {
		return known, nil
	}
	for p := from; p < min(h.Len(), t.Len-newestIndex, from+maxWalked); {
		events, err := r.eventsIn(ctx, t, p+1)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return known, err
		}
		for i := range events {
			if p == h.Len() || events[i].Pos != p+1 || events[i].Chain != h.Chain[p+1] {
				return known, nil
			}
			p++
			known = Place{Thread: t.ID, Session: t.Session, Pos: p}
		}
		if len(events) == 0 {
			break
		}
	}
	return known, nil
}

// hint returns the newest position that this process has seen and the thread that it was in. It returns 0 if it has seen none of the newest
// positions.
func (r *Registry) hint(h *History) (int, ThreadID) {
	for p := h.Len(); p > 0 && p > h.Len()-Newest; p-- {
		if id, ok := r.hints.Get(h.Chain[p]); ok {
			return p, id
		}
	}
	return 0, ""
}

// traced returns the places of traces. It reads them unless the lookup has fetched all of them.
func (r *Registry) traced(ctx context.Context, l *lookup, traces []Hash) ([]Place, error) {
	places := make([]Place, len(traces))
	for i, t := range traces {
		place, fetched := l.traces[t]
		if !fetched {
			return r.readTraces(ctx, traces)
		}
		places[i] = place
	}
	return places, nil
}

func (r *Registry) readTraces(ctx context.Context, traces []Hash) ([]Place, error) {
	places, err := r.store.Trace(ctx, traces)
	if err != nil {
		return nil, fmt.Errorf("read traces: %w", err)
	}
	return places, nil
}

// answered reports whether the history was answered before.
func (r *Registry) answered(ctx context.Context, q Query) (bool, error) {
	places, err := r.traced(ctx, q.lookup, []Hash{AnsweredTrace(q.History.Head())})
	return err == nil && places[0].Known(), err
}
