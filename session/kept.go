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

// Stored is what upstream stores under the id of an answer, as far as the log knows.
type Stored struct {
	Whole bool           // all of it is logged, except for an answer to a request that brought its whole history
	View  CondensationID // the newest condensation of the view that upstream stores; zero: it stores the history as the client sent it
	Other bool           // upstream stores another view, which no condensation describes
}

// StoredTrace returns the trace that records what upstream stores under an answer's id. Only whole histories are recorded.
func StoredTrace(seed Hash, answer string, stored Stored) Hash {
	view := ""
	switch {
	case stored.Other:
		view = "other"
	case stored.View != (CondensationID{}):
		view = fmt.Sprint(stored.View.Seq, " ", stored.View.Thread)
	}
	return trace(seed, 'w', view+"\x00"+answer)
}

// Stored returns what upstream stores under the id of the answer that a request continues. The resolution must have been made by ResolveKept.
// As long as clients sent their whole histories to a thread, the log has them; if there are condensations, it is not known which view upstream
// stores.
func (r *Registry) Stored(ctx context.Context, res *Resolution, answer string) (Stored, error) {
	all, seed := res.Thread.Condensations, res.query.History.Chain[0]
	if res.Thread.Purpose != PurposeKept && res.Thread.Len > 0 {
		return Stored{Whole: true, Other: len(all) > 0}, nil
	}
	candidates := []Stored{{Whole: true}, {Whole: true, Other: true}}
	for i := range all {
		candidates = append(candidates, Stored{Whole: true, View: all[i].ID})
	}
	traces := []Hash{KeptTrace(seed, answer)}
	for _, stored := range candidates {
		traces = append(traces, StoredTrace(seed, answer, stored))
	}
	places, err := r.readTraces(ctx, traces)
	if err != nil {
		return Stored{}, fmt.Errorf("read what upstream stores: %w", err)
	}
	for i, stored := range candidates {
		if places[i+1].Known() && places[i+1] == places[0] { // not of an earlier answer with the same id
			return stored, nil
		}
	}
	return Stored{}, nil
}

// ItemsTrace returns the trace which proves that the items which KeepItems logged are those of an answer.
func ItemsTrace(seed Hash, answer string, items []byte) Hash {
	return trace(seed, 'y', answer+"\x00"+string(items))
}

// AnswerItems returns the items of the answer that a request continues, if KeepItems logged them among the newest entries, otherwise nil.
func (r *Registry) AnswerItems(ctx context.Context, res *Resolution, answer string) ([]byte, error) {
	logged, err := r.NewestItems(ctx, res)
	if err != nil || len(logged) == 0 {
		return nil, err
	}
	traces := make([]Hash, len(logged))
	for i, items := range logged {
		traces[i] = ItemsTrace(res.query.History.Chain[0], answer, items)
	}
	places, err := r.readTraces(ctx, traces)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	if i := slices.IndexFunc(places, Place.Known); i >= 0 {
		return logged[i], nil
	}
	return nil, nil
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
	res.Thread.Condensations = slices.Clone(t.Condensations) // those that cover what the fork does not have will not apply
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
	if all := res.query.History; len(b.Events) == 0 && slices.ContainsFunc(all.Messages, func(m Message) bool { return m.Kind == System && !m.Apart }) {
		b.Events = systemEvents(all, b.Thread.Seen) // upstream adds them to what it stores, even if they are the same as before
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Chain = res.Thread.Head; e.After != apart {
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
	b.Traces.Lasting = append(b.Traces.Lasting, said.Traces...)
	if len(said.Messages) > 0 {
		t.Purpose = PurposeKept
	}
	return b
}
