// Package redisstore keeps sessions in Redis 6 or newer: a single server, one found through Sentinel, or a Cluster.
//
// Places and traces are string keys of their own. A thread is two keys in one slot, its record and its log, so that a
// script can append to both at once: the record is a hash with the fields r (the record as the client wrote it), l (its
// length in positions, and when it began), n (log entries ever written), c (the list of condensations), k (of a fork, all
// its ancestors, whose logs it shares), o (the token of the last write, should it come twice), q (the log entry of a
// pending request to condense) and one s<seq> for each summary. The log is a list; another one holds the traces that the
// thread left, so that they can be deleted with it. A session is one hash, and a sorted set of the threads that are too
// many to list there. An experiment is a hash of sums, by arm, group and what is summed. All of a thread's keys expire
// together, TTL after its last write or that of a fork which shares it, and the secret never.
//
// The size is capped by the server's own maxmemory. Any key may be evicted by itself: none is needed to serve a request,
// and what was lost is written again. docs/redis.md tells what each policy loses, and what happens in each fault.
package redisstore

import (
	"cmp"
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
	scripts sync.Map // from their text
	secret  secret
	closing sync.Once
	starved func() bool   // see there
	slots   atomic.Bool   // a script's keys must be of one slot, though this is no Cluster
	late    time.Duration // by when a write that was under way has arrived
}

var _ session.Backend = (*Store)(nil)

// silence keeps go-redis, whose only logger is the process's, from writing a line to standard error for each connection
// it fails to make. It returns those errors as well.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open makes a store. It does not connect: a server that is away is no error here, but one of each call.
func Open(o Options) *Store {
	o.Timeout, o.Rest = cmp.Or(o.Timeout, defaultTimeout), cmp.Or(o.Rest, defaultRest)
	redis.SetLogger(silence{})
	s := &Store{
		client:  o.client(),
		options: o,
		content: codec.Content{Keep: o.Content, Keys: o.Keys},
		keys:    keys{cmp.Or(o.Prefix, defaultPrefix)},
		late:    2 * o.Timeout,
		starved: starved,
	}
	s.breaker = newBreaker(o.Rest, s.probe)
	return s
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

// script is a call of a script.
type script struct {
	text string
	keys []string
	args []any
}

// on runs a script by its name, or by its text where the server does not know it.
func (c script) on(ctx context.Context, s *Store) *redis.Cmd {
	return s.named(c.text).Run(ctx, s.client, c.keys, c.args...)
}

// named gives the script of a text, of which the name is computed once.
func (s *Store) named(text string) *redis.Script {
	known, is := s.scripts.Load(text)
	if !is {
		known, _ = s.scripts.LoadOrStore(text, redis.NewScript(text))
	}
	return known.(*redis.Script) //nolint:forcetypeassert // nothing else is stored
}

// run runs a script, and reads its reply. What a script says nil of is not there: ErrNotFound.
func run[T any](ctx context.Context, s *Store, c script, reply func(*redis.Cmd) (T, error)) (T, error) {
	return result(ctx, s.write, func(ctx context.Context) (T, error) { return reply(c.on(ctx, s)) })
}

// done runs a script whose reply says nothing more.
func (s *Store) done(ctx context.Context, c script) error {
	return s.write(ctx, func(ctx context.Context) error { return c.on(ctx, s).Err() })
}

// fields reads fields of a hash, "" for those that are not there.
func (s *Store) fields(ctx context.Context, key string, names ...string) ([]string, error) {
	values, err := result(ctx, s.read, func(ctx context.Context) ([]any, error) { return s.client.HMGet(ctx, key, names...).Result() })
	if err != nil {
		return nil, err
	}
	return texts(values, len(names))
}

// texts are the values of a reply, "" for those that are not there.
func texts(values []any, want int) ([]string, error) {
	all := make([]string, len(values))
	for i := range values {
		all[i], _ = values[i].(string)
	}
	return all, replied(values, want)
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
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
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
	network, is := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || is && network.Timeout()
}
