package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// secretEvery is how often the server secret is written again.
const secretEvery = time.Minute

// secret is the server secret as this store has last seen it.
type secret struct {
	mu      sync.Mutex
	value   session.Secret
	written time.Time
}

// Secret implements session.Store. It returns an existing secret even if the server refuses writes. It refuses a database
// of an earlier version.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed secret is empty")
	}
	var value []byte
	var old *redis.IntCmd
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		put := pipe.SetNX(ctx, s.keys.secret(), []byte(proposed), 0)
		get := pipe.Get(ctx, s.keys.secret())
		old = pipe.Exists(ctx, s.keys.oldSecret())
		_, _ = pipe.Exec(ctx) // each command has its own result
		var err error
		value, err = get.Bytes()
		if absent(err) {
			return put.Err()
		}
		return err
	})
	if err == nil && old.Val() > 0 {
		err = fmt.Errorf("%w: %w; or delete the keys %s*", session.ErrUnavailable, codec.ErrOld, s.keys.prefix)
	}
	if err != nil {
		return nil, err
	}
	s.secret.set(value)
	return session.Secret(value), nil
}

func (k *secret) set(value session.Secret) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.written = value, time.Now()
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
