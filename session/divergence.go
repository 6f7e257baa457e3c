package session

import (
	"context"
	"fmt"
)

// Cause says why a history began a thread although some of it was known, or should have been.
type Cause string

// The causes.
const (
	CauseUser     Cause = "user_changed"    // a user's message is another one
	CauseAnswer   Cause = "answer_changed"  // an answer of the model is
	CauseResult   Cause = "result_changed"  // a tool's result is
	CauseLeftOut  Cause = "left_out"        // messages that the thread has are missing
	CauseInserted Cause = "inserted"        // messages stand before one that the thread has there
	CauseSide     Cause = "side_request"    // the agent asks for something beside its conversation: a title, a summary
	CauseUnknown  Cause = "unknown_history" // it has answers already, and nothing of it is known under its key and credential
	CauseUnread   Cause = "unread"          // the thread's log could not be read
)

// Divergence is where a history leaves the thread that it was forked from or linked to.
type Divergence struct {
	Cause Cause  // empty: it continues a thread, begins a conversation, or is linked to one that it shares nothing with
	Pos   int    // of the first message that differs, from 1
	There *Event // what the thread has at that position; nil if that is not known
}

// Bounds of what is read of a log to find a divergence.
const (
	nearby    = 8   // messages that are compared from where a history differs
	mostSteps = 512 // log entries that are read for them, and ancestors that are looked for
)

// Diverges compares a history with the thread that it was forked from or linked to. It writes nothing, and takes a few round trips where
// a thread began, else none.
func (r *Registry) Diverges(ctx context.Context, res *Resolution) (Divergence, error) {
	h, t := res.query.History, &res.Thread
	switch {
	case !res.New:
		return Divergence{}, nil
	case res.Base != nil || res.query.Purpose != PurposeMain:
		return Divergence{Cause: CauseSide, Pos: h.Len()}, nil
	case t.Parent == "" && begins(h, h.Len()):
		return Divergence{}, nil
	case t.Parent == "":
		return Divergence{Cause: CauseUnknown, Pos: 1}, nil
	}
	d := Divergence{Cause: CauseUnread, Pos: t.ForkAt + 1}
	there, err := r.eventsAt(ctx, t.Parent, d.Pos)
	if err != nil {
		return d, fmt.Errorf("read where the thread began: %w", err)
	}
	if len(there) == 0 || d.Pos > h.Len() {
		return d, nil
	}
	d.There, d.Cause = &there[0], compare(h, d.Pos, there)
	if t.ForkAt == 0 && !agrees(h, d.Pos+1, there[1:]) && (d.Cause == CauseUser || d.Cause == CauseAnswer || d.Cause == CauseResult) {
		d = Divergence{}
	}
	return d, nil
}

// compare says how a history differs from position p on from the events that a thread has from there.
func compare(h *History, p int, there []Event) Cause {
	for i := range there[1:] {
		if agrees(h, p, there[i+1:]) {
			return CauseLeftOut
		}
	}
	for i := 1; i < nearby; i++ {
		if agrees(h, p+i, there) {
			return CauseInserted
		}
	}
	switch there[0].Kind {
	case User:
		return CauseUser
	case Agent, Action:
		return CauseAnswer
	}
	return CauseResult
}

// agrees reports whether a history has at position p the first of some events.
func agrees(h *History, p int, events []Event) bool {
	return p <= h.Len() && len(events) > 0 && h.Message(p).Digest == events[0].Digest
}

// eventsAt reads a few messages of a thread from a position on, in the log of whichever ancestor has it.
func (r *Registry) eventsAt(ctx context.Context, id ThreadID, p int) ([]Event, error) {
	t, err := r.store.Thread(ctx, id)
	for n := 0; err == nil && t.ForkAt >= p && t.Parent != "" && n < mostSteps; n++ {
		t, err = r.store.Thread(ctx, t.Parent)
	}
	if err != nil {
		return nil, fmt.Errorf("read thread: %w", err)
	}
	var out []Event
	begin := uint64(max(1, p-t.ForkAt)) //nolint:gosec // positive; each position has an entry, and other entries stand between them
	for from := begin; len(out) < nearby && from < begin+mostSteps; {
		page, err := r.store.Events(ctx, t.ID, from, 4*nearby)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if e.Pos == p+len(out) && len(out) < nearby {
				out = append(out, e)
			}
		}
		from = page[len(page)-1].Seq + 1
	}
	return out, nil
}

// Relation is how a request's history relates to the threads that are known.
type Relation struct {
	Kind   RelationKind
	Parent ThreadID // of a fork or a link; else empty
	ForkAt int      // messages, system prompts aside, that a fork shares with its parent
	System bool     // the thread goes on with other system messages than it was last seen with
}

// RelationKind says it in a word.
type RelationKind string

// The kinds.
const (
	RelationContinuation RelationKind = "continuation" // of a thread
	RelationReplay       RelationKind = "replay"       // of what a thread holds already
	RelationFork         RelationKind = "fork"         // of a thread, before its end: a message is another one, or left out
	RelationLink         RelationKind = "link"         // to a thread, by what was relayed to it, or by the parent that its client names
	RelationNew          RelationKind = "new"
)

// Begins reports whether a thread begins so.
func (k RelationKind) Begins() bool {
	return k == RelationFork || k == RelationLink || k == RelationNew
}

// Relation tells how the history relates to what was known.
func (res *Resolution) Relation() Relation {
	switch {
	case !res.New && res.Match == MatchReplay:
		return Relation{Kind: RelationReplay, System: res.systemChanged()}
	case !res.New:
		return Relation{Kind: RelationContinuation, System: res.systemChanged()}
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

func (res *Resolution) systemChanged() bool {
	return systemDigest(res.query.History.Messages) != res.Thread.System
}
