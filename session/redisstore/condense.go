package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Condense implements session.Store. It is as durable as the server is told to be.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	keys, answers := s.written(id), "0"
	switch {
	case c.Aside():
		answers = "aside"
	case c.Answers():
		answers = "1"
	}
	args := []any{
		s.content.Event(id, codec.Condensed(c)), s.options.TTL.Milliseconds(), token(), answers, codec.Condensation(c), s.content.Text(c),
	}
	seq, err := run(ctx, s, script{noteScript, keys, args}, (*redis.Cmd).Uint64)
	if err != nil {
		return session.Condensation{}, err
	}
	c.ID.Seq = seq
	return c, nil
}

// Prepare implements session.Store.
func (s *Store) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	return s.done(ctx, script{prepareScript, []string{s.keys.thread(id)}, []any{s.content.Prepared(id, c)}})
}

// Prepared implements session.Store.
func (s *Store) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	value, err := result(ctx, s.read, func(ctx context.Context) ([]byte, error) {
		return s.client.HGet(ctx, s.keys.thread(id), "p").Bytes()
	})
	if err != nil {
		return session.Condensation{}, err
	}
	return s.content.ParsePrepared(id, value)
}

// Lock implements session.Store. If its release does not reach the server the lock runs out by itself.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if ttl < time.Millisecond {
		return session.Lease{}, fmt.Errorf("a time of %v", ttl)
	}
	own := token()
	hold := func(ctx context.Context) error {
		taken, err := run(ctx, s, script{lockScript, []string{s.keys.lock(id)}, []any{own, ttl.Milliseconds()}}, (*redis.Cmd).Bool)
		if err == nil && !taken {
			return session.ErrLocked
		}
		return err
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	release := func() { _ = s.done(context.Background(), script{unlockScript, []string{s.keys.lock(id)}, []any{own}}) }
	return session.Lease{Renew: hold, Release: release}, nil
}
