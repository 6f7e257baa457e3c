// Package redisstore keeps records in Redis 6 or newer: a single server, one found through Sentinel, or a Cluster.
//
// A record is a hash, each of its logs a list, and an index entry a string key of its own. The records of a group, and their logs, are in one slot,
// so that one script changes them at once. A record and its logs expire together, TTL after the last write or when another record renews them;
// index entries, TTL after they were written.
//
// The server's maxmemory limits the size. The server may evict any single key: none is needed to serve a request, and
// lost records are written again. docs/redis.md describes the effect of each eviction policy and of each fault.
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
	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Store is a store.Store in Redis. All methods may be called concurrently.
type Store struct {
	client     nodes.Client
	options    Options
	keys       keys
	breaker    *breaker
	closing    sync.Once
	starved    func() bool
	checked    atomic.Bool   // the server was found to have no keys of an earlier version
	crossSlot  atomic.Bool   // scripts cannot use keys of several slots, although the options name no Cluster
	lateWrites time.Duration // time after which a write that was under way has arrived or failed
	refusals   atomic.Int64  // writes in a row that a read-only replica refused
	writesFrom atomic.Int64  // Unix time in nanoseconds before which no write is tried, because writes were refused
}

var _ store.Store = (*Store)(nil)

// silence stops go-redis, whose only logger is global, from writing a line to standard error for each connection that it
// fails to make. It returns those errors as well.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open returns a store. It does not connect: if the server is down, Open succeeds and each call fails.
func Open(o Options) *Store {
	o.Timeout, o.Rest = cmp.Or(o.Timeout, defaultTimeout), cmp.Or(o.Rest, defaultRest)
	redis.SetLogger(silence{})
	s := &Store{
		client:     o.client(),
		options:    o,
		keys:       keys{cmp.Or(o.Prefix, defaultPrefix)},
		lateWrites: 2 * o.Timeout,
		starved:    starved,
	}
	s.breaker = newBreaker(o.Rest, s.probe)
	return s
}

// Ping makes one round trip, in a Cluster one to each master, even if the breaker is open. Until one has succeeded, it also looks for keys of
// an earlier version. An error wraps ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	return s.call(ctx, s.options.Timeout, func(ctx context.Context) error {
		if err := nodes.Ping(ctx, s.client); err != nil {
			return err
		}
		return s.checkFormat(ctx)
	})
}

// probe reports whether the server answers. A refusal is an answer too: calls will be refused just as quickly.
func (s *Store) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	err := nodes.Ping(ctx, s.client)
	return err == nil || !timedOut(err) && ctx.Err() == nil
}

// Close closes the connections. Nothing is ever pending. Later calls return ErrUnavailable. Closing again is not an error.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.breaker.stop()
		err = s.client.Close()
	})
	return err
}

// read runs a group of reading commands with the timeout of reads.
func (s *Store) read(ctx context.Context, commands func(context.Context) error) error {
	return s.guarded(ctx, s.options.Timeout, commands)
}

// write runs a group of writing commands with the timeout of writes.
func (s *Store) write(ctx context.Context, commands func(context.Context) error) error {
	return s.writeWithin(ctx, 2*s.options.Timeout, commands)
}

// maxRefusals is how many writes in a row a read-only replica may refuse. Even if all connections lead to a former master, they are
// replaced by then: the client closes each one on which a write was refused.
const maxRefusals = maxConns / maxTries

// writeWithin runs a group of writing commands. While only a read-only replica can be reached, it runs one group per Options.Rest and
// refuses the others at once, because each attempt costs several connections.
func (s *Store) writeWithin(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	if time.Now().UnixNano() < s.writesFrom.Load() {
		return fmt.Errorf("%w: it was a READONLY replica a moment ago", session.ErrUnavailable)
	}
	err := s.guarded(ctx, timeout, commands)
	switch {
	case err == nil:
		s.refusals.Store(0)
	case redis.IsReadOnlyError(err) && s.refusals.Add(1) > maxRefusals:
		s.writesFrom.Store(time.Now().Add(s.options.Rest).UnixNano())
	}
	return err
}

// execFunc is the type of read and write.
type execFunc func(ctx context.Context, commands func(context.Context) error) error

// result runs a command and returns its result.
func result[T any](ctx context.Context, exec execFunc, command func(context.Context) (T, error)) (value T, err error) {
	err = exec(ctx, func(ctx context.Context) (err error) {
		value, err = command(ctx)
		return err
	})
	return value, err
}

// script is a script with its keys and arguments.
type script struct {
	text string
	keys []string
	args []any
}

// run runs the script by its hash, or by its text if the server does not know it.
func (c script) run(ctx context.Context, s *Store) *redis.Cmd {
	return redis.NewScript(c.text).Run(ctx, s.client, c.keys, c.args...)
}

// texts converts the values of a reply, "" for those that do not exist.
func texts(values []any, want int) ([]string, error) {
	all := make([]string, len(values))
	for i := range values {
		all[i], _ = values[i].(string)
	}
	return all, checkLen(values, want)
}

// pipeline runs the commands that fill adds to a pipeline in one round trip.
func (s *Store) pipeline(ctx context.Context, exec execFunc, fill func(context.Context, redis.Pipeliner)) error {
	return exec(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		fill(ctx, pipe)
		return pipelineErr(pipe.Exec(ctx))
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

// call runs commands. It returns ErrNotFound for an absent value, the context's own error if the caller gave up, and
// ErrUnavailable for everything else that prevents the commands from running: whatever the reason, the request goes on
// without the store.
//
// A server that keeps a call waiting for the timeout of a read does not answer, even if the caller gave up first, and trips
// the breaker. The exception is that this process was too busy to see the answer. Then the call is repeated once.
func (s *Store) call(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	began := time.Now()
	err := attempt(ctx, timeout, commands)
	silent := err != nil && (callerErr(ctx) != nil || timedOut(err)) && time.Since(began) >= s.options.Timeout
	if silent && s.starved() {
		silent = false
		if callerErr(ctx) == nil {
			err = attempt(ctx, timeout, commands)
		}
	}
	if err == nil {
		return nil
	}
	if absent(err) {
		return session.ErrNotFound
	}
	gone := callerErr(ctx)
	if silent {
		s.breaker.trip()
	}
	nodes.LookUp(ctx, s.client)
	if gone != nil {
		return fmt.Errorf("%w: %w", gone, err)
	}
	return fmt.Errorf("%w: %s%w", session.ErrUnavailable, advice(err), err)
}

// slowTurn is the longest time that a goroutine waits to be scheduled if the process is not overloaded.
const slowTurn = 10 * time.Millisecond

// starved reports whether this process is overloaded, so that calls wait to be scheduled here rather than for the server. It measures
// twice, because one long wait means little.
func starved() bool {
	for range 2 {
		began := time.Now()
		runtime.Gosched()
		if time.Since(began) < slowTurn {
			return false
		}
	}
	return true
}

// maxTries is how often a group of commands is sent if it meets connections that were closed or a former master.
const maxTries = 3

// attempt runs commands within a timeout, and runs them again if that may help at once. Running them twice must do no harm, because
// the first time they may have reached the server.
func attempt(ctx context.Context, timeout time.Duration, commands func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := commands(ctx)
	for n := 1; n < maxTries && retryable(err) && ctx.Err() == nil; n++ {
		err = commands(ctx)
	}
	return err
}

// retryable reports whether another connection may succeed, because this one was closed or its server is no longer a
// master. go-redis discards both. A request does not wait for a server that is down or loading its data.
func retryable(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || redis.IsReadOnlyError(err)
}

// advice describes the problem that an operator has to fix, empty if there is none.
func advice(err error) string {
	switch {
	case redis.IsAuthError(err):
		return "the server refuses the user name or password: "
	case redis.IsPermissionError(err), strings.Contains(err.Error(), "user executing the script can't"):
		return "the user lacks a permission on the server: "
	}
	return ""
}

// absent reports whether err is the reply for a value that does not exist. A wrapped redis.Nil means something else: a
// Sentinel that does not know the master returns it.
func absent(err error) bool {
	return err == redis.Nil //nolint:errorlint // see above
}

// callerErr returns why the caller no longer waits, nil if it does. A connection may reach the caller's deadline a moment
// before the context does.
func callerErr(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func timedOut(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || ok && network.Timeout()
}

// checkLen returns an error if a reply does not have the expected length.
func checkLen[T any](reply []T, want int) error {
	if len(reply) == want {
		return nil
	}
	return fmt.Errorf("%w: the server returned %d values instead of %d", session.ErrUnavailable, len(reply), want)
}

// pipelineErr returns the first error of a pipeline's commands other than an absent value. The pipeline's own error may be
// an absent value that hides another error.
func pipelineErr(commands []redis.Cmder, err error) error {
	for _, c := range commands {
		if e := c.Err(); e != nil && !absent(e) {
			return e
		}
	}
	if absent(err) {
		return nil
	}
	return err
}
