package session

import (
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

// longest finds the longest known prefix and its thread.
func (r *Registry) longest(ctx context.Context, q Query) (*look, error) {
	h := q.History
	s, l, first := newSearch(h.Len()), &look{}, r.first(q)
	s.wide = first.pos == 0
	l.named = first.named
	var hinted *Thread
	hint, traces := first.hint, first.traces
	for positions := s.next(); positions != nil || hint != "" || len(traces) > 0; positions = s.next() {
		found, err := r.store.Find(ctx, hashesAt(h, positions), hint, traces...)
		if err != nil {
			return nil, fmt.Errorf("find prefix: %w", err)
		}
		if found.Hinted != nil {
			hinted = found.Hinted
		}
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

// inquiry is what is asked along with the first look-up.
type inquiry struct {
	pos    int      // newest position that this process has seen, 0 if none
	hint   ThreadID // where that was; else the thread that has the history's name
	named  bool     // the latter
	traces []Hash
}

// first guesses from the newest hashes that this process has seen. Of a history that it has not, the usual questions are
// those of a first request; of one that has not grown, whether it got its answer.
func (r *Registry) first(q Query) (i inquiry) {
	h := q.History
	i.pos, i.hint = r.hint(h)
	if i.pos == 0 && h.Len() > 0 && !q.other {
		i.hint, i.named = nameOf(h), true
	}
	if h.Len() > 0 && (i.pos == 0 || i.pos == h.Len()) {
		i.traces = append(i.traces, AnsweredTrace(h.Head()))
	}
	if i.pos == 0 && q.Scope.Key != "" {
		i.traces = append(i.traces, r.keyTraces(q)...)
	}
	return i
}

// hint guesses the thread from the newest hashes that this process has seen.
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
