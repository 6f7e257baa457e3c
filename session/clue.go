package session

import (
	"context"
	"slices"
)

// clue holds the traces that are looked up together to find where a part of a history was last relayed or logged. It has one trace, or
// idTraces of them for a call and its result.
type clue []Hash

// Indexes of the traces in a call's clue. The id alone proves nothing, because servers repeat ids, even those that look unique.
const (
	idRepeated     = iota // a history that has several calls with this id
	idRelayed             // where a call with this id was last relayed
	idFirstRelayed        // where a call with this id was first relayed
	idFirstResult         // where any result for this id was first logged
	idResult              // where this result for the id was last logged
	idThisFirst           // where this result for the id was first logged
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

// place returns the place that the clue's traces prove, zero if they prove none. A call's traces prove a place if only one call with the
// id was ever relayed, and either no result for the id was logged yet, or this result was the first, and the same session logged it first
// and last.
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

// resultOf returns the position of the result for a call of the message at position p, 0 if there is none. If no result has the call's id,
// it returns the first result after p, because a message with the results of several calls has only the id of the first one.
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

// maxMarkedResults is how many tool results, the newest, leave recent traces when they are logged together.
const maxMarkedResults = 8

// traceResults adds the traces to store when the tool results after position after are logged, oldest first: of the newest, and of the
// answers in the sample. Only results after position got have traces that keep pointing to the place where they were stored first, because a
// run has just received them; a result before it may be one that the client has edited.
func (h *History) traceResults(t *Traces, after, got int) {
	var last, first []Hash
	results := 0
	for p := h.Len(); p > max(after-maxCallAhead, 0); p-- {
		m := h.Message(p)
		for _, id := range m.Calls {
			at := h.resultOf(p, id)
			if at <= after || !unique(id) || results >= maxMarkedResults && !m.sampled() {
				continue
			}
			results++
			c := callClue(h.Chain[0], id, h.Message(at))
			switch {
			case h.repeated(id):
				last = append(last, c[idRepeated])
			case m.sampled():
				t.Lasting = append(t.Lasting, c[idResult])
			default:
				last = append(last, c[idResult])
			}
			if at > got && !h.repeated(id) && results <= maxMarkedResults {
				first = append(first, c[idFirstResult], c[idThisFirst])
			}
		}
	}
	slices.Reverse(last)
	slices.Reverse(first)
	t.Recent, t.First = append(t.Recent, last...), append(t.First, first...)
}

// cutByClient reports whether the tool results at the given positions, which differ from those that were logged, were shortened by the
// client. That is so if the ids of their calls identify them, and no run ever received results with this content. If the traces cannot be
// read, cutByClient returns false.
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
