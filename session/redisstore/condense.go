package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Condense implements session.Store. It is as durable as the server is told to be.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	keys := []string{s.keys.thread(id), s.keys.log(id)}
	args := []any{codec.Condensation(c), s.content.Text(c), s.content.Event(id, codec.Condensed(c)), s.options.TTL.Milliseconds()}
	err := s.write(ctx, func(ctx context.Context) (err error) {
		c.ID.Seq, err = s.scripts.condense.Run(ctx, s.client, keys, args...).Uint64()
		return err
	})
	if err != nil {
		return session.Condensation{}, fmt.Errorf("condense %s: %w", id, err)
	}
	return c, nil
}

// Secret implements session.Store.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("secret: the proposed one is empty")
	}
	var stored *redis.StringCmd
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		pipe.SetNX(ctx, s.keys.secret(), []byte(proposed), 0)
		stored = pipe.Get(ctx, s.keys.secret())
		_, err := pipe.Exec(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return session.Secret(stored.Val()), nil
}

// Lock implements session.Store. If unlock does not reach the server the lock runs out by itself.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (unlock func(), err error) {
	if ttl < time.Millisecond {
		return nil, fmt.Errorf("lock %s: a time of %v", id, ttl)
	}
	token, taken := rand.Text(), false
	err = s.write(ctx, func(ctx context.Context) (err error) {
		taken, err = s.client.SetNX(ctx, s.keys.lock(id), token, ttl).Result()
		return err
	})
	if err == nil && !taken {
		err = session.ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", id, err)
	}
	return func() { s.unlock(id, token) }, nil
}

func (s *Store) unlock(id session.ThreadID, token string) {
	_ = s.write(context.Background(), func(ctx context.Context) error {
		return s.scripts.unlock.Run(ctx, s.client, []string{s.keys.lock(id)}, token).Err()
	})
}
