package session

import (
	"cmp"
	"context"
	"fmt"
)

// look is what the store says of a history. What will probably be asked next is asked along with the first look-up, in the
// same round trip.
type look struct {
	known  Place   // the longest known prefix
	thread *Thread // that it is in, nil if nothing is known

	named    bool    // the thread that has the history's name was asked for
	namesake *Thread // and is this one, nil if there is none
	traces   map[Hash]Place
}

// longest finds the longest known prefix and its thread. The newest hashes that this process has seen tell what else to ask: of a
// history that it has not seen, the usual questions are those of a first request; of one that has not grown, whether it got its answer.
func (r *Registry) longest(ctx context.Context, q Query) (*look, error) {
	h, l, s := q.History, &look{}, newSearch(q.History.Len())
	pos, hint := r.hint(h)
	s.wide = pos == 0
	if pos == 0 && h.Len() > 0 && !q.other {
		hint, l.named = nameOf(h), true
	}
	var traces []Hash
	if h.Len() > 0 && (pos == 0 || pos == h.Len()) {
		traces = append(traces, AnsweredTrace(h.Head()))
	}
	if pos == 0 && q.Scope.Key != "" {
		traces = append(traces, r.keyTraces(q)...)
	}
	var hinted *Thread
	for positions := s.next(); positions != nil || hint != "" || len(traces) > 0; positions = s.next() {
		found, err := r.store.Find(ctx, hashesAt(h, positions), hint, traces...)
		if err != nil {
			return nil, fmt.Errorf("find prefix: %w", err)
		}
		hinted = cmp.Or(found.Hinted, hinted)
		l.keep(traces, found.Traced)
		hint, traces = "", nil
		s.seen(positions, found.Places)
	}
	if l.named {
		l.namesake = hinted
	}
	return l, r.owner(ctx, l, s.known, hinted)
}

// owner reads the thread that a place is in, unless it is the one that was hinted at.
func (r *Registry) owner(ctx context.Context, l *look, known Place, hinted *Thread) error {
	if !known.Known() {
		return nil
	}
	if hinted != nil && hinted.ID == known.Thread {
		l.known, l.thread = known, hinted
		return nil
	}
	thread, err := r.known(ctx, known.Thread)
	if thread != nil { // otherwise it has expired
		l.known, l.thread = known, thread
	}
	return err
}

// hint gives the newest position that this process has seen, 0 if none, and the thread that it was in.
func (r *Registry) hint(h *History) (int, ThreadID) {
	for p := h.Len(); p > 0 && p > h.Len()-Newest; p-- {
		if id, ok := r.hints.Get(h.Chain[p]); ok {
			return p, id
		}
	}
	return 0, ""
}

func hashesAt(h *History, positions []int) []Hash {
	out := make([]Hash, len(positions))
	for i, p := range positions {
		out[i] = h.Chain[p]
	}
	return out
}

func (l *look) keep(traces []Hash, places []Place) {
	for i, p := range places {
		if l.traces == nil {
			l.traces = make(map[Hash]Place, len(traces))
		}
		l.traces[traces[i]] = p
	}
}

// traced gives who left traces, all of which were asked for before, or none.
func (r *Registry) traced(ctx context.Context, l *look, traces []Hash) ([]Place, error) {
	places := make([]Place, len(traces))
	for i, t := range traces {
		place, asked := l.traces[t]
		if !asked {
			return r.trace(ctx, traces)
		}
		places[i] = place
	}
	return places, nil
}

func (r *Registry) trace(ctx context.Context, traces []Hash) ([]Place, error) {
	places, err := r.store.Trace(ctx, traces)
	if err != nil {
		return nil, fmt.Errorf("read traces: %w", err)
	}
	return places, nil
}

// answered reports whether a history has got its answer.
func (r *Registry) answered(ctx context.Context, q Query) (bool, error) {
	places, err := r.traced(ctx, q.look, []Hash{AnsweredTrace(q.History.Head())})
	return err == nil && places[0].Known(), err
}
