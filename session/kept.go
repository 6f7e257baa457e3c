package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kept says where upstream stores the history before a request's messages. The zero value means that the request contains its whole
// history.
type Kept struct {
	Answer       string // id of the answer that the request continues
	Conversation string // id of the conversation to which upstream adds the request's messages and the answer
}

// KeptTrace returns the trace of an answer or a conversation that upstream stores under an id.
func KeptTrace(seed Hash, id string) Hash { return trace(seed, 'u', id) }

// Held is what upstream stores under the id of an answer, as far as the log knows.
type Held struct {
	Whole bool           // all of it is logged
	View  CondensationID // the newest condensation of the view that upstream stores; zero: it stores the history as the client sent it
	Other bool           // upstream stores another view, which no condensation describes
}

// HeldTrace returns the trace that records what upstream holds under an answer's id. Only whole histories are recorded.
func HeldTrace(seed Hash, answer string, held Held) Hash {
	view := ""
	switch {
	case held.Other:
		view = "other"
	case held.View != (CondensationID{}):
		view = fmt.Sprint(held.View.Seq, " ", held.View.Thread)
	}
	return trace(seed, 'w', view+"\x00"+answer)
}

// Held returns what upstream holds under the id of the answer that a request continues. The resolution must have been made by ResolveKept.
//
// A thread to which only whole histories were sent is logged as a whole, apart from its last answer. The view that upstream holds is then
// not known if there are condensations.
func (r *Registry) Held(ctx context.Context, res *Resolution, answer string) (Held, error) {
	all := res.Thread.Condensations
	if res.Thread.Purpose != PurposeKept && res.Thread.Len > 0 {
		return Held{Whole: true, Other: len(all) > 0}, nil
	}
	candidates := []Held{{Whole: true}, {Whole: true, Other: true}}
	for i := range all {
		candidates = append(candidates, Held{Whole: true, View: all[i].ID})
	}
	traces := make([]Hash, len(candidates))
	for i, held := range candidates {
		traces[i] = HeldTrace(res.query.History.Chain[0], answer, held)
	}
	places, err := r.readTraces(ctx, traces)
	if err != nil {
		return Held{}, fmt.Errorf("read what upstream holds: %w", err)
	}
	if i := slices.IndexFunc(places, Place.Known); i >= 0 {
		return candidates[i], nil
	}
	return Held{}, nil
}

// traces returns the traces of the conversation and the answer.
func (k Kept) traces(seed Hash) (out []Hash) {
	for _, id := range [...]string{k.Conversation, k.Answer} {
		if id != "" {
			out = append(out, KeptTrace(seed, id))
		}
	}
	return out
}

// ResolveKept is Resolve for messages that continue a history which upstream stores. All of them are new: they continue a thread at its
// end, or fork it if they continue an earlier answer. Earlier messages that never passed through the proxy are unknown.
func (r *Registry) ResolveKept(ctx context.Context, q Query, k Kept) (Resolution, error) {
	res := Resolution{Source: SourceNew, query: q}
	if err := r.resolveKept(ctx, q, k, &res); err != nil {
		return res, fmt.Errorf("resolve: %w", err)
	}
	return res, nil
}

func (r *Registry) resolveKept(ctx context.Context, q Query, k Kept, res *Resolution) error {
	places, err := r.readTraces(ctx, k.traces(q.History.Chain[0]))
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(places, Place.Known); i >= 0 {
		thread, err := r.readThread(ctx, places[i].Thread)
		if err != nil {
			return err
		}
		if thread != nil {
			pos := places[i].Pos
			if k.Conversation != "" {
				pos = thread.Len // upstream adds to a conversation's end
			}
			r.continueKept(res, thread, pos)
			return nil
		}
	}
	q.randomNames, q.lookup = true, &lookup{}
	err = r.beginThread(ctx, q, res)
	res.Thread.Condensations = nil
	return err
}

// continueKept makes the resolution continue a thread at its end, or fork it at an earlier position.
func (r *Registry) continueKept(res *Resolution, t *Thread, pos int) {
	res.Thread, res.Match, res.Source, res.Logged = *t, MatchEnd, SourceTrace, t.Len
	if res.query.Scope.Key != "" {
		res.Source = SourceKey
	}
	if pos >= t.Len {
		return
	}
	now := time.Now()
	res.Thread = Thread{
		ID: ThreadID(newID()), Session: t.Session, Tenant: t.Tenant, Dialect: t.Dialect, Origin: Origin{Parent: t.ID, ForkAt: pos}, Len: pos,
		Head: trace(t.Head, 'u', string(t.ID)), System: t.System, Created: now, Seen: now, Purpose: t.Purpose,
	}
	res.Thread.Lost = t.Lost
	res.Thread.Condensations = slices.DeleteFunc(slices.Clone(t.Condensations), func(c Condensation) bool { return c.Prefix > pos })
	res.Match, res.New, res.Logged, res.parentCreated = MatchInside, true, pos, t.Created
}

// Said holds the messages of one turn whose earlier history upstream stores. It has none if the turn only compacted that history.
type Said struct {
	Partial  bool      // the answer that the request continues is missing
	Before   int       // number of Messages that precede the request's: of the answer that it continues
	Messages []Message // the request's and the answer's, without system messages
	Tokens   []int     // of each message
	Traces   []Hash    // of the ids by which the client may refer to this turn
}

// AppendKept logs the messages of a turn that ResolveKept resolved. If another request was faster, it resolves the turn again, appends the
// messages there, and updates the resolution.
func (r *Registry) AppendKept(ctx context.Context, res *Resolution, k Kept, said Said) error {
	for range maxAppends {
		err := r.store.Append(ctx, r.keptBatch(res, said))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrStale):
			return fmt.Errorf("append to thread %s: %w", res.Thread.ID, err)
		}
		again, err := r.ResolveKept(ctx, res.query, k)
		if err != nil {
			return err
		}
		*res = again
	}
	return fmt.Errorf("append to thread %s: %w", res.Thread.ID, ErrStale)
}

func (r *Registry) keptBatch(res *Resolution, said Said) Batch {
	b := r.newBatch(res)
	for i := range b.Events {
		if e := &b.Events[i]; e.After != apart {
			e.After += res.Logged + said.Before
		}
	}
	t := &b.Thread
	for i, m := range said.Messages {
		t.Len, t.Head = t.Len+1, Next(t.Head, m.Digest)
		b.Events = append(b.Events, Event{
			Pos: t.Len, Kind: m.Kind, Digest: m.Digest, Chain: t.Head, Tokens: said.Tokens[i], Time: t.Seen, Payload: m.Payload(),
		})
	}
	b.Traces = append(b.Traces, said.Traces...)
	if len(said.Messages) > 0 {
		t.Purpose = PurposeKept
	}
	return b
}
