package session

import (
	"context"
	"fmt"
	"math"
)

// Cause says why a history began a new thread although part of it was known, or should have been.
type Cause string

const (
	CauseUser     Cause = "user_changed"    // a user message differs
	CauseAnswer   Cause = "answer_changed"  // an answer of the model differs
	CauseResult   Cause = "result_changed"  // a tool result differs
	CauseLeftOut  Cause = "left_out"        // messages of the thread are missing
	CauseInserted Cause = "inserted"        // there are additional messages before one of the thread's
	CauseSide     Cause = "side_request"    // the agent makes a request outside of its conversation, such as for a title
	CauseUnknown  Cause = "unknown_history" // it has answers already, but is entirely unknown under its key and credential
	CauseUnread   Cause = "unread"          // the thread's log could not be read
)

// Divergence is where a history leaves the thread that it was forked from or linked to.
type Divergence struct {
	Cause Cause  // empty if it continues a thread, begins a conversation, or is linked to one with which it shares nothing
	Pos   int    // position of the first message that differs
	There *Event // the thread's event at that position, nil if unknown
}

// Bounds of the search for a divergence in a log.
const (
	maxCompared    = 8        // messages compared, starting where the history differs
	maxScanned     = 512      // log entries read to find these messages; also the maximum number of ancestors followed
	maxScannedSize = 16 << 20 // bytes of these entries' payloads
)

// Diverges compares a history with the thread that it was forked from or linked to. It writes nothing. It takes a few round trips to the
// store if the history begins a thread, otherwise none.
func (r *Registry) Diverges(ctx context.Context, res *Resolution) (Divergence, error) {
	h, t := res.query.History, &res.Thread
	switch {
	case !res.New:
		return Divergence{}, nil
	case res.Base != nil || res.query.Purpose != PurposeMain:
		return Divergence{Cause: CauseSide, Pos: h.Len()}, nil
	case t.Parent == "" && onlyOpening(h):
		return Divergence{}, nil
	case t.Parent == "":
		return Divergence{Cause: CauseUnknown, Pos: 1}, nil
	}
	d := Divergence{Cause: CauseUnread, Pos: t.ForkAt + 1}
	events, err := r.eventsAt(ctx, t.Parent, d.Pos)
	if err != nil {
		return d, fmt.Errorf("read where the thread began: %w", err)
	}
	if len(events) == 0 || d.Pos > h.Len() {
		return d, nil
	}
	d.There, d.Cause = &events[0], compare(h, d.Pos, events)
	replaced := d.Cause == CauseUser || d.Cause == CauseAnswer || d.Cause == CauseResult
	if t.ForkAt == 0 && replaced && !agrees(h, d.Pos+1, events[1:]) {
		return Divergence{}, nil // the threads are linked, but share no messages
	}
	return d, nil
}

// compare returns how a history differs, from position p on, from the events that a thread has there.
func compare(h *History, p int, events []Event) Cause {
	for i := range events[1:] {
		if agrees(h, p, events[i+1:]) {
			return CauseLeftOut
		}
	}
	for i := 1; i < maxCompared; i++ {
		if agrees(h, p+i, events) {
			return CauseInserted
		}
	}
	switch events[0].Kind {
	case User:
		return CauseUser
	case Agent, Action:
		return CauseAnswer
	}
	return CauseResult
}

// agrees reports whether the history has the first of the events at position p.
func agrees(h *History, p int, events []Event) bool {
	return p <= h.Len() && len(events) > 0 && h.Message(p).Digest == events[0].Digest
}

// eventsAt reads up to maxCompared messages of a thread, from position p on, from the log of the thread or of the ancestor that logged
// them. Only the first one has its payload.
func (r *Registry) eventsAt(ctx context.Context, id ThreadID, p int) ([]Event, error) {
	t, err := r.store.Thread(ctx, id)
	for n := 0; err == nil && t.ForkAt >= p && t.Parent != "" && n < maxScanned; n++ {
		t, err = r.store.Thread(ctx, t.Parent)
	}
	if err != nil {
		return nil, fmt.Errorf("read thread: %w", err)
	}
	return r.eventsIn(ctx, &t, p)
}

// eventsIn is eventsAt for a thread that logged position p itself.
func (r *Registry) eventsIn(ctx context.Context, t *Thread, p int) ([]Event, error) {
	var out []Event
	begin := uint64(1)
	if len(t.Shares) == 0 {
		begin = uint64(max(1, p-t.ForkAt)) // each position has an entry of its own, so position p is not in an earlier one
	}
	size := 0
	for from := begin; len(out) < maxCompared && from < begin+maxScanned && size < maxScannedSize; {
		page, err := r.store.Events(ctx, t.ID, from, 4*maxCompared)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			size += len(e.Payload)
			if len(out) > 0 {
				e.Payload, e.Ref = nil, EntryID{}
			}
			if e.Pos == p+len(out) && len(out) < maxCompared {
				out = append(out, e)
			}
		}
		from = page[len(page)-1].Seq + 1
	}
	return out, ReadContent(ctx, r.store, out, math.MaxInt)
}

// Relation is how a request's history relates to known threads.
type Relation struct {
	Kind   RelationKind
	Parent ThreadID // of a fork or a link, otherwise empty
	ForkAt int      // messages that a fork shares with its parent, system messages excluded
	System bool     // the thread continues with other system messages than it was last seen with
}

// RelationKind is the kind of a Relation.
type RelationKind string

const (
	RelationContinuation RelationKind = "continuation" // continues a thread
	RelationReplay       RelationKind = "replay"       // repeats part of a thread
	RelationFork         RelationKind = "fork"         // leaves a thread before its end: a message differs or is left out
	RelationLink         RelationKind = "link"         // linked to a thread by traces, or by the parent that the client named
	RelationNew          RelationKind = "new"
)

// Begins reports whether a history of this kind begins a thread.
func (k RelationKind) Begins() bool {
	return k == RelationFork || k == RelationLink || k == RelationNew
}

// Relation returns how the history relates to known threads.
func (res *Resolution) Relation() Relation {
	if !res.New {
		r := Relation{Kind: RelationContinuation, System: systemDigest(res.query.History.Messages) != res.Thread.System}
		if res.Match == MatchReplay {
			r.Kind = RelationReplay
		}
		return r
	}
	r := Relation{Kind: RelationNew, Parent: res.Thread.Parent, ForkAt: res.Thread.ForkAt}
	switch {
	case res.Match == MatchInside:
		r.Kind = RelationFork
	case r.Parent != "":
		r.Kind = RelationLink
	}
	return r
}
