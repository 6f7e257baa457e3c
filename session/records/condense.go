package records

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// logged returns the change of a thread that logs one more event.
func (s *Store) logged(id session.ThreadID, e session.Event) store.Part {
	return store.Part{
		Key: threadKey(id), If: []store.Cond{there()},
		Log: []store.Append{{Log: logEvents, Entries: []string{string(s.content.Event(id, e))}}},
	}
}

// Condense implements session.Store. It is as durable as the store makes commits.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	part := s.logged(id, codec.Condensed(c))
	if c.Answers() {
		part.Set = append(part.Set, set("p", ""), set("q", ""))
	}
	encoded := codec.Condensation(c)
	part.Listed = []store.Field{set("c", strconv.Itoa(len(encoded))+":"+string(encoded))}
	part.Named = []store.Field{set("s", string(s.content.Text(c)))}
	result, err := s.change(ctx, part)
	if err != nil {
		return session.Condensation{}, err
	}
	c.ID.Seq = result.End
	return c, nil
}

// Request implements session.Archive.
func (s *Store) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	part := s.logged(id, session.Event{Kind: session.Requested, Time: at})
	part.Set = append(part.Set, set("q", ""))
	part.Listed = []store.Field{set("q", "")}
	_, err := s.change(ctx, part)
	return err
}

// Summary implements session.Store.
func (s *Store) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	name := "s" + strconv.FormatUint(id.Seq, 10)
	rec, err := s.one(ctx, threadKey(id.Thread), name, "c")
	if err != nil {
		return "", err
	}
	if rec.Fields[name] == "" {
		return "", session.ErrNotFound
	}
	return s.content.ParseSummary([]byte(rec.Fields[name]), []byte(rec.Fields["c"]), id)
}

// Prepare implements session.Store.
func (s *Store) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	_, err := s.change(ctx, store.Part{
		Key: threadKey(id), If: []store.Cond{there()}, Set: []store.Field{set("p", string(s.content.Prepared(id, c)))}, Renew: store.Never,
	})
	return err
}

// Prepared implements session.Store.
func (s *Store) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	rec, err := s.one(ctx, threadKey(id), "p")
	if err == nil && !rec.Exists() {
		err = session.ErrNotFound
	}
	if err != nil {
		return session.Condensation{}, err
	}
	return s.content.ParsePrepared(id, []byte(rec.Fields["p"]))
}

// Lock implements session.Store.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if ttl < time.Millisecond {
		return session.Lease{}, fmt.Errorf("ttl of %v: it must be at least %v", ttl, time.Millisecond)
	}
	return s.store.Lock(ctx, threadKey(id), ttl)
}

// unpriced is the field of savings that names a model without a price. The others are v0, v1 and so on, in the order of sumsOf.
const unpriced = "vm"

// savingsFields are the fields of savings.
var savingsFields = []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", unpriced}

// sumsOf returns the sums in savingsFields. A field name is never reused for another sum.
func sumsOf(s *session.Savings) []int64 {
	return []int64{
		s.Tokens, s.NotSent, s.Rewritten,
		int64(s.Calls), int64(s.Used.Input), int64(s.Used.Cached), int64(s.Used.Output), s.Nano, int64(s.Took),
	}
}

// Save implements session.Store.
func (s *Store) Save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	part := store.Part{Key: threadKey(id), If: []store.Cond{there()}, Renew: store.Never}
	for i, n := range sumsOf(&more) {
		if n != 0 {
			part.Add = append(part.Add, store.Count{Name: savingsFields[i], N: n})
		}
	}
	if more.Unpriced != "" {
		part.Set = []store.Field{set(unpriced, more.Unpriced)}
	}
	_, err := s.change(ctx, part)
	return err
}

// Saved implements session.Store.
func (s *Store) Saved(ctx context.Context, id session.ThreadID) (session.Savings, error) {
	rec, err := s.one(ctx, threadKey(id), savingsFields...)
	if err != nil {
		return session.Savings{}, err
	}
	var n [9]int64
	for i := range n {
		n[i] = number(rec.Fields[savingsFields[i]])
	}
	return session.Savings{
		Tokens: n[0], NotSent: n[1], Rewritten: n[2],
		Cost: session.Cost{
			Calls: int(n[3]), Used: session.Usage{Input: int(n[4]), Cached: int(n[5]), Output: int(n[6])}, Nano: n[7], Took: time.Duration(n[8]),
			Unpriced: rec.Fields[unpriced],
		},
	}, nil
}
