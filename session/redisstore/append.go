package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Append implements session.Store. It is two round trips: the log and the thread's record at once, then the indexes,
// which live in other slots. An error of the second leaves the batch appended.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	err := codec.CheckIDs(b.Thread.ID, b.Thread.Session)
	var shared []session.ThreadID
	if err == nil {
		shared, err = s.appendLog(ctx, b)
	}
	if err == nil {
		err = s.index(ctx, b, shared)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", b.Thread.ID, err)
	}
	return nil
}

// appendLog gives the threads whose log this one shares.
func (s *Store) appendLog(ctx context.Context, b session.Batch) ([]session.ThreadID, error) {
	keys, args := []string{s.keys.thread(b.Thread.ID), s.keys.log(b.Thread.ID)}, s.appendArgs(b)
	var shared string
	err := s.write(ctx, func(ctx context.Context) (err error) {
		shared, err = s.scripts.append.Run(ctx, s.client, keys, args...).Text()
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: the thread is not at %d", session.ErrStale, b.At)
	}
	return splitIDs(shared), err
}

func (s *Store) appendArgs(b session.Batch) []any {
	args := make([]any, 0, 7+len(b.Events))
	begins := 0
	if codec.Begins(b) {
		begins = 1
	}
	args = append(args, b.At, begins, codec.Thread(b.Thread), b.Thread.Len, codec.List(b.Thread.Condensations),
		joinIDs(sharedBy(b.Thread)), s.options.TTL.Milliseconds())
	for _, e := range b.Events {
		args = append(args, codec.Event(e, s.options.Content))
	}
	return args
}

// sharedBy lists the threads whose events or summaries t needs: its parent, if it is a fork, and those that made the
// condensations it inherits.
func sharedBy(t session.Thread) []session.ThreadID {
	var ids []session.ThreadID
	if t.ForkAt > 0 && t.Parent != "" {
		ids = append(ids, t.Parent)
	}
	for _, c := range t.Condensations {
		if maker := c.ID.Thread; maker != t.ID && maker != "" && !slices.Contains(ids, maker) {
			ids = append(ids, maker)
		}
	}
	return ids
}

// joinIDs prefixes each id with a byte that splitIDs finds again, as ids may hold any other.
func joinIDs(ids []session.ThreadID) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%d:%s", len(id), id)
	}
	return b.String()
}

func splitIDs(s string) (ids []session.ThreadID) {
	for s != "" {
		var n int
		size, rest, _ := strings.Cut(s, ":")
		if _, err := fmt.Sscan(size, &n); err != nil || n < 0 || n > len(rest) {
			return ids
		}
		ids, s = append(ids, session.ThreadID(rest[:n])), rest[n:]
	}
	return ids
}

// index writes the places, the traces and the session's record, and keeps the shared threads alive.
func (s *Store) index(ctx context.Context, b session.Batch, shared []session.ThreadID) error {
	if len(b.Places)+len(b.Traces)+len(shared) == 0 && b.Thread.Session == "" {
		return nil
	}
	return s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		for _, p := range b.Places {
			pipe.Set(ctx, s.keys.place(p.Hash), codec.Place(p.Place), s.options.TTL)
		}
		s.mark(ctx, pipe, b.Traces, codec.Last(b))
		if b.Thread.Session != "" {
			s.join(ctx, pipe, b)
		}
		s.keep(ctx, pipe, shared)
		return failure(pipe.Exec(ctx))
	})
}

func (s *Store) keep(ctx context.Context, pipe redis.Pipeliner, ids []session.ThreadID) {
	if s.options.TTL == 0 {
		return
	}
	for _, id := range ids {
		pipe.PExpire(ctx, s.keys.thread(id), s.options.TTL)
		pipe.PExpire(ctx, s.keys.log(id), s.options.TTL)
	}
}

// Mark implements session.Store.
func (s *Store) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	if len(traces) == 0 {
		return ctx.Err()
	}
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		s.mark(ctx, pipe, traces, at)
		return failure(pipe.Exec(ctx))
	})
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
