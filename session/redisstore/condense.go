package redisstore

import (
	"context"
	"fmt"
	"time"

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
	seq, err := result(ctx, s.write, func(ctx context.Context) (uint64, error) {
		return s.scripts.note.Run(ctx, s.client, keys, args...).Uint64()
	})
	if err != nil {
		return session.Condensation{}, err
	}
	c.ID.Seq = seq
	return c, nil
}

// Prepare implements session.Store.
func (s *Store) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	value := s.content.Prepared(id, c)
	there, err := result(ctx, s.write, func(ctx context.Context) (bool, error) {
		return s.scripts.prepare.Run(ctx, s.client, []string{s.keys.thread(id)}, value).Bool()
	})
	if err == nil && !there {
		err = session.ErrNotFound
	}
	return err
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
		taken := false
		err := s.write(ctx, func(ctx context.Context) (err error) {
			taken, err = s.scripts.lock.Run(ctx, s.client, []string{s.keys.lock(id)}, own, ttl.Milliseconds()).Bool()
			return err
		})
		if err == nil && !taken {
			return session.ErrLocked
		}
		return err
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	return session.Lease{Renew: hold, Release: func() { s.unlock(id, own) }}, nil
}

func (s *Store) unlock(id session.ThreadID, own []byte) {
	_ = s.write(context.Background(), func(ctx context.Context) error {
		return s.scripts.unlock.Run(ctx, s.client, []string{s.keys.lock(id)}, own).Err()
	})
}
