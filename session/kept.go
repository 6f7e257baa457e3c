package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Kept says where upstream keeps what came before a request's messages. The zero value: nowhere, the request has its whole history.
type Kept struct {
	Answer       string // id of the answer that the request goes on from
	Conversation string // id of what the request's messages, and the answer to them, are added to
}

// KeptTrace is where what is said is remembered under an id of upstream's.
func KeptTrace(seed Hash, id string) Hash { return trace(seed, 'u', id) }

// traces are where a request finds what it goes on from.
func (k Kept) traces(seed Hash) (out []Hash) {
	for _, id := range [...]string{k.Conversation, k.Answer} {
		if id != "" {
			out = append(out, KeptTrace(seed, id))
		}
	}
	return out
}

// ResolveKept is Resolve for messages that go on from what upstream keeps. They are new: they continue a thread at its end, or fork it
// where it went on otherwise. Nothing is known of what was said before the first of them that passed here.
func (r *Registry) ResolveKept(ctx context.Context, q Query, k Kept) (Resolution, error) {
	res := Resolution{Source: SourceNew, query: q}
	if err := r.resolveKept(ctx, q, k, &res); err != nil {
		return res, fmt.Errorf("resolve: %w", err)
	}
	return res, nil
}

func (r *Registry) resolveKept(ctx context.Context, q Query, k Kept, res *Resolution) error {
	places, err := r.trace(ctx, k.traces(q.History.Chain[0]))
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(places, Place.Known); at >= 0 {
		thread, err := r.known(ctx, places[at].Thread)
		if err != nil {
			return err
		}
		if thread != nil {
			r.goesOn(res, *thread, places[at].Pos, k.Conversation != "")
			return nil
		}
	}
	q.other, q.look = true, &look{}
	err = r.begin(ctx, q, res)
	res.Thread.Condensations = nil
	return err
}

// goesOn has a resolution continue a thread from a position on, or from its end whatever the position.
func (r *Registry) goesOn(res *Resolution, t Thread, pos int, atEnd bool) {
	res.Thread, res.Match, res.Source, res.Logged = t, MatchEnd, SourceTrace, t.Len
	if res.query.Scope.Key != "" {
		res.Source = SourceKey
	}
	if atEnd || pos >= t.Len {
		return
	}
	now := r.now()
	res.Thread = Thread{
		ID: ThreadID(r.newID()), Session: t.Session, Tenant: t.Tenant, Dialect: t.Dialect, Parent: t.ID, ForkAt: pos, Len: pos,
		Head: trace(t.Head, 'u', string(t.ID)), System: t.System, Created: now, Seen: now,
	}
	res.Match, res.New, res.Logged, res.parent = MatchInside, true, pos, t.Created
}

// Said is what was said in a turn of which upstream keeps what came before.
type Said struct {
	Messages []Message // the answer's included, system messages left out
	Tokens   []int     // of each
	Traces   []Hash    // by which the client may refer to it
}

// AppendKept logs what was said in a turn that ResolveKept resolved.
func (r *Registry) AppendKept(ctx context.Context, res *Resolution, k Kept, said Said) error {
	for range resolveTries {
		err := r.store.Append(ctx, r.keptBatch(res, said))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrStale):
			return fmt.Errorf("append what upstream keeps: %w", err)
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
	t := &b.Thread
	for i, m := range said.Messages {
		t.Len, t.Head = t.Len+1, next(t.Head, m.Digest)
		b.Events = append(b.Events, Event{
			Pos: t.Len, Kind: m.Kind, Digest: m.Digest, Chain: t.Head, Tokens: said.Tokens[i], Time: t.Seen, Payload: m.Raw,
		})
	}
	b.Traces = append(b.Traces, said.Traces...)
	t.Purpose = PurposeKept
	return b
}
