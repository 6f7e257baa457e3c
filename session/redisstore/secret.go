package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Secret implements session.Store. It returns an existing secret even if the server refuses writes.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed secret is empty")
	}
	exec := func(ctx context.Context, commands func(context.Context) error) error {
		return s.guarded(ctx, 2*s.options.Timeout, commands)
	}
	return result(ctx, exec, func(ctx context.Context) (session.Secret, error) {
		if err := s.checkFormat(ctx); err != nil {
			return nil, err
		}
		pipe := s.client.Pipeline()
		put := pipe.SetNX(ctx, s.keys.secret(), []byte(proposed), 0)
		get := pipe.Get(ctx, s.keys.secret())
		_, _ = pipe.Exec(ctx) // each command has its own result
		value, err := get.Bytes()
		if absent(err) {
			return nil, put.Err()
		}
		if err == nil && len(value) == 0 {
			err = errors.New("the secret in Redis is empty: delete its key")
		}
		return value, err
	})
}

func (s *Store) Set(ctx context.Context, name string, value []byte) error {
	return s.write(ctx, func(ctx context.Context) error {
		if len(value) == 0 {
			return s.client.HDel(ctx, s.keys.settings(), name).Err()
		}
		return s.client.HSet(ctx, s.keys.settings(), name, value).Err()
	})
}

func (s *Store) Settings(ctx context.Context) (map[string][]byte, error) {
	values, err := result(ctx, s.read, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, s.keys.settings()).Result()
	})
	all := make(map[string][]byte, len(values))
	for name, value := range values {
		all[name] = []byte(value)
	}
	return all, err
}

var _ session.Buckets = (*Store)(nil)

// Draw implements session.Buckets with the clocks of the replicas. If a connection breaks, n may be taken more than once.
func (s *Store) Draw(ctx context.Context, bucket string, n, perMinute int, owed bool) (time.Duration, error) {
	exec := func(ctx context.Context, commands func(context.Context) error) error {
		return s.writeWithin(ctx, s.options.Timeout, commands)
	}
	ms, err := result(ctx, exec, func(ctx context.Context) (int64, error) {
		draw := script{drawScript, []string{s.keys.bucket(bucket)}, []any{n, perMinute, owed, time.Now().UnixMilli()}}
		return draw.run(ctx, s).Int64()
	})
	return time.Duration(ms) * time.Millisecond, err
}
