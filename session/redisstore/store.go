package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
	breaker *breaker
	scripts scripts
	secret  secret
	closing sync.Once
	starved func() bool   // see there
	slots   atomic.Bool   // a script's keys must be of one slot, though this is no Cluster
	late    time.Duration // by when a write that was under way has arrived
}

var _ session.Backend = (*Store)(nil)

type scripts struct {
	append, mark, session, note, prepare, enter, save, events, lock, unlock, reserve, settle, draw, enqueue *redis.Script
}

// silence keeps go-redis, whose only logger is the process's, from writing a line to standard error for each connection
// it fails to make. It returns those errors as well.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open makes a store. It does not connect: a server that is away is no error here, but one of each call. Options that
// cannot work are.
func Open(o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open redis session store: %w", err)
	}
	o = o.withDefaults()
	redis.SetLogger(silence{})
	s := &Store{
		client:  o.client(),
		options: o,
		content: codec.Content{Keep: o.Content, Keys: o.Keys},
		keys:    keys{o.Prefix},
		late:    2 * o.Timeout,
		starved: starved,
		scripts: scripts{
			append:  redis.NewScript(appendScript),
			mark:    redis.NewScript(markScript),
			session: redis.NewScript(sessionScript),
			note:    redis.NewScript(noteScript),
			prepare: redis.NewScript(prepareScript),
			enter:   redis.NewScript(enterScript),
			save:    redis.NewScript(saveScript),
			events:  redis.NewScript(eventsScript),
			lock:    redis.NewScript(lockScript),
			unlock:  redis.NewScript(unlockScript),
			reserve: redis.NewScript(reserveScript),
			settle:  redis.NewScript(settleScript),
			draw:    redis.NewScript(drawScript),
			enqueue: redis.NewScript(enqueueScript),
		},
	}
	s.breaker = newBreaker(o.Rest, s.probe)
	return s, nil
}

// Ping makes one round trip, whatever went before; in a Cluster, one to each master. An error wraps ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	return s.call(ctx, s.options.Timeout, s.pingAll)
}

// pingAll asks every server that calls go to: a Cluster of which one master is silent is not well.
func (s *Store) pingAll(ctx context.Context) error {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
	}
	return s.client.Ping(ctx).Err()
}

// probe reports whether the server answers, be it with a refusal: then calls are refused as well, and at once.
func (s *Store) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	err := s.pingAll(ctx)
	return err == nil || !timedOut(err) && ctx.Err() == nil
}

// Close closes the connections. Nothing is ever pending. Later calls give ErrUnavailable; closing again is no error.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.breaker.stop()
		err = s.client.Close()
	})
	return err
}

// read does one group of reading commands within its deadline.
func (s *Store) read(ctx context.Context, commands func(context.Context) error) error {
	return s.guarded(ctx, s.options.Timeout, commands)
}

// write does one group of writing commands within its deadline.
func (s *Store) write(ctx context.Context, commands func(context.Context) error) error {
	return s.guarded(ctx, 2*s.options.Timeout, commands)
}

// bounded is read or write.
type bounded func(ctx context.Context, commands func(context.Context) error) error

// result does one command that has a result.
func result[T any](ctx context.Context, do bounded, command func(context.Context) (T, error)) (value T, err error) {
	err = do(ctx, func(ctx context.Context) (err error) {
		value, err = command(ctx)
		return err
	})
	return value, err
}

// pipeline does in one round trip what fill adds to a pipeline.
func (s *Store) pipeline(ctx context.Context, do bounded, fill func(context.Context, redis.Pipeliner)) error {
	return do(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		fill(ctx, pipe)
		return failure(pipe.Exec(ctx))
	})
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
//
// A server that let a call wait for as long as a read may take does not answer, even if the caller was the first to give
// up; unless it was this process that had no time to listen: then the call is made once more.
func (s *Store) call(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	began := time.Now()
	err := within(ctx, timeout, commands)
	late := err != nil && (leaving(ctx) != nil || timedOut(err)) && time.Since(began) >= s.options.Timeout
	if late && s.starved() { // then this says nothing of the server
		late = false
		if leaving(ctx) == nil {
			err = within(ctx, timeout, commands)
		}
	}
	if err == nil {
		return nil
	}
	if absent(err) {
		return session.ErrNotFound
	}
	left := leaving(ctx)
	if late {
		s.breaker.trip()
	}
	s.lookAround(ctx)
	if left != nil {
		return fmt.Errorf("%w: %w", left, err)
	}
	return fmt.Errorf("%w: %s%w", session.ErrUnavailable, reason(err), err)
}

// within carries out commands within a time.
func within(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return try(ctx, commands)
}

// unfair is how long this process's own work may keep one part of it from its turn.
const unfair = 10 * time.Millisecond

// starved reports whether this process has more to do than it gets done: a wait is then for its turn, and not for
// a server. Asked twice, because one slow turn says little.
func starved() bool {
	for range 2 {
		began := time.Now()
		runtime.Gosched()
		if time.Since(began) < unfair {
			return false
		}
	}
	return true
}

// lookAround has a Cluster's client ask who holds which slots, apart from the calls. By itself it would ask a minute later,
// and knock at a dead master's door until then.
func (s *Store) lookAround(ctx context.Context) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// tries is how often a group of commands is sent, should it meet connections that have ended or a former master.
const tries = 3

// try carries out commands, and does so again where that helps at once. Carrying them out twice must do no harm: the
// first time may have reached the server.
func try(ctx context.Context, commands func(context.Context) error) error {
	err := commands(ctx)
	for n := 1; n < tries && again(err) && ctx.Err() == nil; n++ {
		err = commands(ctx)
	}
	return err
}

// again reports whether another connection may do better: this one was cut, or its server is no master any more. Both
// are closed by then. To wait for a server that is away, or loads its data, is not for a request to do.
func again(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || redis.IsReadOnlyError(err)
}

// reason says in words what an operator has to change.
func reason(err error) string {
	switch {
	case redis.IsAuthError(err):
		return "the server refuses the user name or password: "
	case redis.IsPermissionError(err), strings.Contains(err.Error(), "user executing the script can't"):
		return "the user lacks a permission on the server: "
	}
	return ""
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
