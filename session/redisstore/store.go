package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Store is a session.Store in Redis. All methods may be called concurrently.
type Store struct {
	client  redis.UniversalClient
	options Options
	content codec.Content
	keys    keys
	breaker breaker
	scripts scripts
	closing sync.Once
}

var _ session.Store = (*Store)(nil)

type scripts struct{ append, condense, events, unlock *redis.Script }

// silence keeps go-redis, whose only logger is the process's, from writing a line to standard error for each connection
// it fails to make. It returns those errors as well.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open makes a store. It does not connect: a server that is away is no error here, but one of each call. Options that
// can not work are.
func Open(o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open redis session store: %w", err)
	}
	o = o.withDefaults()
	redis.SetLogger(silence{})
	return &Store{
		client:  o.client(),
		options: o,
		content: codec.Content{Keep: o.Content, Keys: o.Keys},
		keys:    keys{o.Prefix},
		breaker: breaker{now: time.Now},
		scripts: scripts{
			append:   redis.NewScript(appendScript),
			condense: redis.NewScript(condenseScript),
			events:   redis.NewScript(eventsScript),
			unlock:   redis.NewScript(unlockScript),
		},
	}, nil
}

// Ping makes one round trip, whatever went before. An error wraps ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	err := s.call(ctx, s.options.Timeout, func(ctx context.Context) error { return s.client.Ping(ctx).Err() })
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// Close lets go of the connections. Nothing is ever pending. Later calls give ErrUnavailable; closing again is no error.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() { err = s.client.Close() })
	if err != nil {
		return fmt.Errorf("close redis session store: %w", err)
	}
	return nil
}

// read does one group of reading commands within its deadline.
func (s *Store) read(ctx context.Context, commands func(context.Context) error) error {
	return s.guarded(ctx, s.options.Timeout, commands)
}

// write does one group of writing commands within its deadline.
func (s *Store) write(ctx context.Context, commands func(context.Context) error) error {
	return s.guarded(ctx, 2*s.options.Timeout, commands)
}

func (s *Store) guarded(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.breaker.allow() {
		return fmt.Errorf("%w: it did not answer a moment ago", session.ErrUnavailable)
	}
	return s.call(ctx, timeout, commands)
}

// call gives ErrNotFound for an absent value, the context's own error if the caller has left, and ErrUnavailable for
// all else that keeps commands from being carried out: whatever the reason, the request goes on without the store.
func (s *Store) call(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := commands(bounded)
	if err == nil || absent(err) {
		s.breaker.report(false)
		if err != nil {
			return session.ErrNotFound
		}
		return nil
	}
	if left := leaving(ctx); left != nil {
		return fmt.Errorf("%w: %w", left, err)
	}
	s.breaker.report(timedOut(err))
	return fmt.Errorf("%w: %w", session.ErrUnavailable, err)
}

// absent reports the reply for a value that does not exist. A wrapped one is another matter: a Sentinel that does not
// know the master says so.
func absent(err error) bool {
	return err == redis.Nil //nolint:errorlint // see above
}

// leaving is why the caller waits no longer. A connection can reach the caller's deadline a moment before the context
// does.
func leaving(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &network) && network.Timeout()
}
