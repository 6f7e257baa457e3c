package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// apart reports whether what a write touches lies in several slots, so that no script may have all of it.
func (s *Store) apart() bool { return s.options.Cluster || s.slots.Load() }

// crossed reports whether a server that looks like a single one refused a script for its slots: it stands before a cluster.
// It is not asked again.
func (s *Store) crossed(err error) bool {
	if err != nil && redis.HasErrorPrefix(err, "CROSSSLOT") {
		s.slots.Store(true)
		return true
	}
	return false
}

// appendApart appends to the log, and then to the indexes.
func (s *Store) appendApart(ctx context.Context, b session.Batch, shared []session.ThreadID) error {
	l, err := s.appendLog(ctx, b, shared)
	if err != nil {
		return staleIfAbsent(err, b)
	}
	if err := s.index(ctx, b, l); err != nil {
		return err
	}
	return s.keep(ctx, b, l)
}

func (s *Store) appendLog(ctx context.Context, b session.Batch, shared []session.ThreadID) (logged, error) {
	log := script{appendScript, s.written(b.Thread.ID), s.appendArgs(b, shared, false)}
	if !codec.Begins(b) || b.Thread.Session == "" {
		return s.appendScripted(ctx, log)
	}
	// The thread is put into its session's record before it logs anything, in the same round trip: so deleting the session
	// finds all of it.
	var reply *redis.Cmd
	err := s.pipe(ctx, func(_ redis.Pipeliner, run runner) {
		run(s.join(b, "HSETNX", false))
		reply = run(log)
	})
	if err == nil && absent(reply.Err()) {
		err = session.ErrNotFound
	}
	if err != nil {
		return logged{}, err
	}
	values, err := reply.Slice()
	if err != nil {
		return logged{}, err
	}
	return parseLogged(values)
}

// index writes the places, the traces and the session's record. A thread that was deleted meanwhile leaves none of them:
// ErrStale.
func (s *Store) index(ctx context.Context, b session.Batch, l logged) error {
	if len(b.Places)+len(b.Traces) == 0 && b.Thread.Session == "" {
		return nil
	}
	values := s.indexes(b)
	var own, parent *redis.StringCmd
	err := s.pipe(ctx, func(pipe redis.Pipeliner, run runner) {
		s.set(ctx, pipe, values)
		if b.Thread.Session != "" {
			run(s.join(b, "HSET", l.renewed))
		}
		own = pipe.HGet(ctx, s.keys.thread(b.Thread.ID), "l") // last: who deletes the thread later finds all of this
		if parent = nil; forks(b) {
			parent = pipe.HGet(ctx, s.keys.thread(b.Thread.Parent), "l")
		}
	})
	if err != nil || is(own.Val(), b.Thread.Created) && (parent == nil || is(parent.Val(), b.ParentCreated)) {
		return err
	}
	if err := s.withdraw(ctx, b, values, own.Val()); err != nil {
		return err
	}
	return fmt.Errorf("%w: the thread, or what it shares, was deleted", session.ErrStale)
}

// runner adds a script to a pipeline.
type runner func(script) *redis.Cmd

// pipe writes what fill adds to a pipeline in one round trip. Scripts go by their names; where a server does not know one,
// all is sent again with their text, which does no harm.
func (s *Store) pipe(ctx context.Context, fill func(redis.Pipeliner, runner)) error {
	send := func(eval func(*redis.Script, context.Context, redis.Scripter, []string, ...any) *redis.Cmd) error {
		return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
			fill(pipe, func(c script) *redis.Cmd { return eval(s.named(c.text), ctx, pipe, c.keys, c.args...) })
		})
	}
	err := send((*redis.Script).EvalSha)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = send((*redis.Script).Eval)
	}
	return err
}

// Mark implements session.Store. It is one round trip.
func (s *Store) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	if len(traces) == 0 {
		return ctx.Err()
	}
	keys := []string{s.keys.thread(at.Thread), s.keys.left(at.Thread)}
	args := []any{joinHashes(traces), s.options.TTL.Milliseconds(), s.lease().Milliseconds(), codec.Place(at)}
	if s.apart() {
		return s.markApart(ctx, traces, at, script{markScript, keys, args})
	}
	whole := append(keys, s.keys.indexed(nil, traces)...) //nolint:gocritic // it is full: the other keeps its own
	err := s.done(ctx, script{markScript, whole, args})
	if s.crossed(err) {
		err = s.markApart(ctx, traces, at, script{markScript, keys, args})
	}
	return err
}

// markApart writes what lies in other slots than the thread together with it. If that is gone then, so must the traces be.
func (s *Store) markApart(ctx context.Context, traces []session.Hash, at session.Place, note script) error {
	var there *redis.IntCmd
	values := s.marks(traces, at)
	err := s.pipe(ctx, func(pipe redis.Pipeliner, run runner) {
		run(note)
		s.set(ctx, pipe, values)
		there = pipe.Exists(ctx, note.keys[0])
	})
	if err == nil && there.Val() == 0 {
		if err = s.drop(ctx, values); err == nil {
			err = session.ErrNotFound
		}
	}
	return err
}

// marks are the keys and values of traces that point to a place.
func (s *Store) marks(traces []session.Hash, at session.Place) map[string]string {
	values, place := map[string]string{}, string(codec.Place(at))
	for _, h := range traces {
		values[s.keys.trace(h)] = place
	}
	return values
}

// indexes are the keys and values of a batch's places and traces.
func (s *Store) indexes(b session.Batch) map[string]string {
	values := s.marks(b.Traces, codec.Last(b))
	for _, p := range b.Places {
		values[s.keys.place(p.Hash)] = string(codec.Place(p.Place))
	}
	return values
}

// set adds values to a pipeline.
func (s *Store) set(ctx context.Context, pipe redis.Pipeliner, values map[string]string) {
	for key, value := range values {
		pipe.Set(ctx, key, value, s.options.TTL)
	}
}
