package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

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
	err := s.done(ctx, script{markScript, append(keys, s.keys.indexed(nil, traces)...), args}) //nolint:gocritic // it is full: the other keeps its own
	if s.crossed(err) {
		err = s.markApart(ctx, traces, at, script{markScript, keys, args})
	}
	return err
}

// markApart writes what lies in other slots than the thread together with it. If that is gone then, so must the traces be.
func (s *Store) markApart(ctx context.Context, traces []session.Hash, at session.Place, note script) error {
	var there *redis.IntCmd
	err := s.pipe(ctx, func(pipe redis.Pipeliner, run runner) {
		run(note)
		s.mark(ctx, pipe, traces, at)
		there = pipe.Exists(ctx, note.keys[0])
	})
	if err == nil && there.Val() == 0 {
		if err = s.drop(ctx, s.marks(traces, at)); err == nil {
			err = session.ErrNotFound
		}
	}
	return err
}

func (s *Store) mark(ctx context.Context, pipe redis.Pipeliner, traces []session.Hash, at session.Place) {
	if len(traces) == 0 {
		return
	}
	place := codec.Place(at)
	for _, h := range traces {
		pipe.Set(ctx, s.keys.trace(h), place, s.options.TTL)
	}
}
