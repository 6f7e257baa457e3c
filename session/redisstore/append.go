package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Append implements session.Store. It is two round trips: the log and the thread's record at once, then the indexes,
// which live in other slots. An error of the second leaves the batch appended. To begin a fork takes one more.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	err := codec.CheckIDs(b.Thread.ID, b.Thread.Session)
	var shared []session.ThreadID
	if err == nil {
		shared, err = s.sharedBy(ctx, b)
	}
	if err == nil {
		shared, err = s.appendLog(ctx, b, shared)
	}
	if err == nil {
		err = s.index(ctx, b, shared)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", b.Thread.ID, err)
	}
	return nil
}

// appendLog gives the threads whose logs this one shares: those of the batch, if it begins.
func (s *Store) appendLog(ctx context.Context, b session.Batch, shared []session.ThreadID) ([]session.ThreadID, error) {
	keys, args := s.written(b.Thread.ID), s.appendArgs(b, shared)
	var kept string
	err := s.write(ctx, func(ctx context.Context) (err error) {
		if codec.Begins(b) {
			kept, err = s.begin(ctx, b, shared, keys, args)
			return err
		}
		kept, err = s.scripts.append.Run(ctx, s.client, keys, args...).Text()
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: the thread is not at %d", session.ErrStale, b.At)
	}
	return splitIDs(kept), err
}

func (s *Store) appendArgs(b session.Batch, shared []session.ThreadID) []any {
	args := make([]any, 0, 9+len(b.Events))
	begins := 0
	if codec.Begins(b) {
		begins = 1
	}
	args = append(args, point(b, b.At), begins, codec.Thread(b.Thread), point(b, b.Thread.Len), codec.List(b.Thread.Condensations),
		joinIDs(shared), s.options.TTL.Milliseconds(), token(), joinHashes(b.Traces))
	for _, e := range b.Events {
		args = append(args, s.content.Event(b.Thread.ID, e))
	}
	return args
}

// token makes a write known to the server, should it come twice.
func token() []byte {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return b
}

// point is how far a thread has come, and which one of its name it is: one that was deleted may have begun anew since.
func point(b session.Batch, length int) string {
	return fmt.Sprint(length) + began(b.Thread.Created)
}

func began(created time.Time) string {
	return fmt.Sprintf("@%d.%d", created.Unix(), created.Nanosecond())
}

// begin puts a thread into its session's record before it logs anything of it, in one round trip, so that whoever deletes
// the session finds all of it.
func (s *Store) begin(ctx context.Context, b session.Batch, shared []session.ThreadID, keys []string, args []any) (kept string, err error) {
	pipe := s.client.Pipeline()
	if b.Thread.Session != "" {
		s.join(ctx, pipe, b, shared, "HSETNX")
	}
	logged := pipe.Eval(ctx, appendScript, keys, args...)
	if err := failure(pipe.Exec(ctx)); err != nil {
		return "", err
	}
	return logged.Text()
}

// written names what every write of a thread touches: its record, its log and the list of traces that it left.
func (s *Store) written(id session.ThreadID) []string {
	return []string{s.keys.thread(id), s.keys.log(id), s.keys.left(id)}
}

func joinHashes(hashes []session.Hash) []byte {
	all := make([]byte, 0, len(hashes)*len(session.Hash{}))
	for _, h := range hashes {
		all = append(all, h[:]...)
	}
	return all
}

// index writes the places, the traces and the session's record, and keeps the shared threads alive. A thread that was
// deleted meanwhile leaves none of them: ErrStale.
func (s *Store) index(ctx context.Context, b session.Batch, shared []session.ThreadID) error {
	if len(b.Places)+len(b.Traces)+len(shared) == 0 && b.Thread.Session == "" {
		return nil
	}
	var own, parent *redis.StringCmd
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		for _, p := range b.Places {
			pipe.Set(ctx, s.keys.place(p.Hash), codec.Place(p.Place), s.options.TTL)
		}
		s.mark(ctx, pipe, b.Traces, codec.Last(b))
		if b.Thread.Session != "" {
			s.join(ctx, pipe, b, shared, "HSET")
		}
		s.keep(ctx, pipe, shared)
		s.keepSecret(ctx, pipe)
		own = pipe.HGet(ctx, s.keys.thread(b.Thread.ID), "l") // last: who deletes the thread later finds all of this
		if forks(b) {
			parent = pipe.HGet(ctx, s.keys.thread(b.Thread.Parent), "l")
		}
		return failure(pipe.Exec(ctx))
	})
	if err != nil || is(own.Val(), b.Thread.Created) && (parent == nil || is(parent.Val(), b.ParentCreated)) {
		return err
	}
	if err := s.withdraw(ctx, b, own.Val()); err != nil {
		return err
	}
	return fmt.Errorf("%w: the thread, or what it shares, was deleted", session.ErrStale)
}

// is reports whether the point that was read is of the thread of its name that began then; any, if that is not known.
func is(point string, created time.Time) bool {
	return point != "" && (created.IsZero() || strings.HasSuffix(point, began(created)))
}

// forks reports whether b may begin a fork, which needs its parent.
func forks(b session.Batch) bool { return b.At > 0 && b.At == b.Thread.ForkAt && b.Thread.Parent != "" }

// Mark implements session.Store.
func (s *Store) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	if len(traces) == 0 {
		return ctx.Err()
	}
	var there *redis.IntCmd
	record := s.keys.thread(at.Thread)
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		pipe.Eval(ctx, markScript, []string{record, s.keys.left(at.Thread)}, joinHashes(traces), s.options.TTL.Milliseconds())
		s.mark(ctx, pipe, traces, at)
		there = pipe.Exists(ctx, record)
		return failure(pipe.Exec(ctx))
	})
	if err == nil && there.Val() == 0 {
		if err = s.drop(ctx, s.marks(traces, at)); err == nil {
			err = session.ErrNotFound
		}
	}
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

func (s *Store) mark(ctx context.Context, pipe redis.Pipeliner, traces []session.Hash, at session.Place) {
	if len(traces) == 0 {
		return
	}
	place := codec.Place(at)
	for _, h := range traces {
		pipe.Set(ctx, s.keys.trace(h), place, s.options.TTL)
	}
}
