package redisstore

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Set implements session.Archive.
func (s *Store) Set(ctx context.Context, name string, value []byte) error {
	return s.write(ctx, func(ctx context.Context) error {
		if len(value) == 0 {
			return s.client.HDel(ctx, s.keys.settings(), name).Err()
		}
		return s.client.HSet(ctx, s.keys.settings(), name, value).Err()
	})
}

// Settings implements session.Archive.
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

// Draw implements session.Buckets, by the clocks of the replicas. Where it is not known what reached the server, it is drawn twice at most.
func (s *Store) Draw(ctx context.Context, bucket string, n, perMinute int, owed bool) (time.Duration, error) {
	ms, err := result(ctx, s.read, func(ctx context.Context) (int64, error) {
		return script{drawScript, []string{s.keys.bucket(bucket)}, []any{n, perMinute, owed, time.Now().UnixMilli()}}.on(ctx, s).Int64()
	})
	return time.Duration(ms) * time.Millisecond, err
}
