package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// secretEvery is how often the server secret is written again.
const secretEvery = time.Minute

// secret is the server secret as this store has last seen it.
type secret struct {
	mu      sync.Mutex
	value   session.Secret
	written time.Time
}

// Secret implements session.Store. It returns an existing secret even if the server refuses writes.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed secret is empty")
	}
	value, err := result(ctx, s.write, func(ctx context.Context) ([]byte, error) {
		pipe := s.client.Pipeline()
		put := pipe.SetNX(ctx, s.keys.secret(), []byte(proposed), 0)
		get := pipe.Get(ctx, s.keys.secret())
		_, _ = pipe.Exec(ctx) // each command has its own result
		value, err := get.Bytes()
		if absent(err) {
			return nil, put.Err()
		}
		return value, err
	})
	if err != nil {
		return nil, err
	}
	s.secret.mu.Lock()
	defer s.secret.mu.Unlock()
	s.secret.value, s.secret.written = value, time.Now()
	return value, nil
}

// due returns the secret if it is time to write it again with SETNX, otherwise nil. A server that evicts any key
// would otherwise sooner or later evict this one, which is rarely read, and replicas that start later would get another
// secret. The write also counts as a use for an LRU policy.
func (k *secret) due() session.Secret {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.written) < secretEvery {
		return nil
	}
	k.written = time.Now()
	return k.value
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
	ms, err := result(ctx, s.read, func(ctx context.Context) (int64, error) {
		draw := script{drawScript, []string{s.keys.bucket(bucket)}, []any{n, perMinute, owed, time.Now().UnixMilli()}}
		return draw.run(ctx, s).Int64()
	})
	return time.Duration(ms) * time.Millisecond, err
}
