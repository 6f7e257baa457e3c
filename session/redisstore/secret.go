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

// secret is the server secret as this store knows it.
type secret struct {
	mu      sync.Mutex
	value   session.Secret
	written time.Time
}

// Secret implements session.Store. One that is there is given even by a server that takes no writes. A database of an
// earlier version is refused.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed one is empty")
	}
	var value []byte
	var old *redis.IntCmd
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		put := pipe.SetNX(ctx, s.keys.secret(), []byte(proposed), 0)
		get := pipe.Get(ctx, s.keys.secret())
		old = pipe.Exists(ctx, s.keys.oldSecret())
		_, _ = pipe.Exec(ctx) // each has its own outcome
		var err error
		if value, err = get.Bytes(); absent(err) {
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

// due gives the secret if it is time to write it again, unless it is there, and then not for a while. A server that evicts
// any key would sooner or later evict this one, which is read so rarely, and replicas that start later would have another.
// That an LRU policy sees it used is part of the purpose.
func (k *secret) due() session.Secret {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.written) < secretEvery {
		return nil
	}
	k.written = time.Now()
	return k.value
}
