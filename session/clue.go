package session

import (
	"context"
	"slices"
)

// A clue is the traces that together may show where something in a history was last relayed or logged: one trace, or those of a call and its
// result.
type clue []Hash

// The traces of a clue of a call. An id alone proves nothing: servers repeat ids, also those that look unique.
const (
	idRepeated     = iota // some history had several calls with the id
	idRelayed             // a call with the id was relayed last
	idFirstRelayed        // and first
	idFirstResult         // a result for the id was logged first
	idResult              // this result for the id was logged last
	idThisFirst           // and first
	idTraces
)

func callClue(seed Hash, id string, result *Message) clue {
	this := id + "\x00" + string(result.Digest[:])
	return clue{
		idRepeated: trace(seed, 'x', id),
		idRelayed:  trace(seed, 'c', id), idFirstRelayed: trace(seed, 'f', id),
		idFirstResult: trace(seed, 'i', id), idResult: trace(seed, 'd', this), idThisFirst: trace(seed, 'e', this),
	}
}

// place returns the place that the clue's traces prove, zero if they prove none. Only one call with the id may have been relayed. Its result
// must be the first that was logged for the id, and no other session may have logged it last, or there is no logged result yet.
func (c clue) place(places []Place) Place {
	if len(c) < idTraces {
		return places[0]
	}
	relayed, first := places[idRelayed], places[idFirstRelayed]
	result, got := places[idResult], places[idThisFirst]
	switch {
	case places[idRepeated].Known():
		return Place{}
	case first.Known() && first != relayed:
		return Place{}
	case got != places[idFirstResult], got.Known() && got.Session != result.Session:
		return Place{}
	case result.Known():
		return result
	case first == relayed:
		return relayed
	}
	return Place{}
}

// readClues returns the place that each clue proves, zero where it proves none. It takes one round trip.
func (r *Registry) readClues(ctx context.Context, clues []clue) ([]Place, error) {
	var traces []Hash
	for _, c := range clues {
		traces = append(traces, c...)
	}
	if len(traces) == 0 {
		return nil, nil
	}
	places, err := r.readTraces(ctx, traces)
	if err != nil {
		return nil, err
	}
	proven := make([]Place, len(clues))
	for i, c := range clues {
		proven[i], places = c.place(places), places[len(c):]
	}
	return proven, nil
}

// maxCallAhead is how many messages after a call may precede its result.
const maxCallAhead = 64

// resultOf returns the position of the result for a call of the message at position p, 0 if there is none. A message with the results of
// several calls names only the first.
func (h *History) resultOf(p int, callID string) (at int) {
	for q := p + 1; q <= min(h.Len(), p+maxCallAhead) && h.Message(q).Kind != User; q++ {
		switch m := h.Message(q); {
		case m.Kind == Observation && m.Result == callID:
			return q
		case m.Kind == Observation && at == 0:
			at = q
		}
	}
	return at
}

// callClues returns the clues of those calls of the message at position p that can identify a run.
func (h *History) callClues(p int) (out []clue) {
	for _, id := range h.Message(p).Calls {
		if at := h.resultOf(p, id); at > 0 && h.identifies(id) {
			out = append(out, callClue(h.Chain[0], id, h.Message(at)))
		}
	}
	return out
}

// resultTraces returns the traces that the tool results after a position leave when they are logged, and those that keep the place where they
// were left first, which only results after the position got leave: a run got them, while those before may be what a client made of a result.
func (h *History) resultTraces(after, got int) (last, first []Hash) {
	for p := max(after-maxCallAhead, 0) + 1; p <= h.Len(); p++ {
		for _, id := range h.Message(p).Calls {
			at := h.resultOf(p, id)
			if at <= after || !unique(id) {
				continue
			}
			if c := callClue(h.Chain[0], id, h.Message(at)); h.repeated(id) {
				last = append(last, c[idRepeated])
			} else {
				last = append(last, c[idResult])
				if at > got {
					first = append(first, c[idFirstResult], c[idThisFirst])
				}
			}
		}
	}
	return last, first
}

// cutByClient reports whether tool results that differ from those of the history's run are what its client left of them: the ids of their
// calls identify them, and no run got these results. If that cannot be read, it returns false.
func (r *Registry) cutByClient(ctx context.Context, h *History, positions []int) bool {
	var traces []Hash
	for _, p := range positions {
		m := h.Message(p)
		if !h.identifies(m.Result) || p > h.lastByModel() {
			return false
		}
		c := callClue(h.Chain[0], m.Result, m)
		traces = append(traces, c[idRepeated], c[idThisFirst])
	}
	if len(traces) == 0 {
		return true
	}
	places, err := r.readTraces(ctx, traces)
	return err == nil && !slices.ContainsFunc(places, Place.Known)
}
