package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// sharedBy lists the threads whose events or summaries b's thread will need, if b begins it: its parent, if it is a fork,
// all that the parent itself shares, and those that made the condensations it inherits. ErrStale if the parent is gone:
// the fork would be half a thread.
func (s *Store) sharedBy(ctx context.Context, b session.Batch) ([]session.ThreadID, error) {
	t := b.Thread
	var ids []session.ThreadID
	if t.ForkAt > 0 && t.Parent != "" {
		ids = append(ids, t.Parent)
	}
	for _, c := range t.Condensations {
		ids = with(ids, t.ID, c.ID.Thread)
	}
	if b.At == 0 || b.At != t.ForkAt || t.Parent == "" {
		return ids, nil
	}
	ancestors, err := s.kept(ctx, t.Parent)
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: the thread %s, which it was to share, is gone", session.ErrStale, t.Parent)
	}
	return with(ids, t.ID, ancestors...), err
}

// with adds those of more that are new and not the thread itself.
func with(ids []session.ThreadID, self session.ThreadID, more ...session.ThreadID) []session.ThreadID {
	for _, id := range more {
		if id != self && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// kept reads which threads a thread keeps alive.
func (s *Store) kept(ctx context.Context, id session.ThreadID) ([]session.ThreadID, error) {
	var field string
	err := s.read(ctx, func(ctx context.Context) (err error) {
		field, err = s.client.HGet(ctx, s.keys.thread(id), "k").Result()
		return err
	})
	return splitIDs(field), err
}

func (s *Store) keep(ctx context.Context, pipe redis.Pipeliner, ids []session.ThreadID) {
	if s.options.TTL == 0 {
		return
	}
	for _, id := range ids {
		pipe.PExpire(ctx, s.keys.thread(id), s.options.TTL)
		pipe.PExpire(ctx, s.keys.log(id), s.options.TTL)
		pipe.PExpire(ctx, s.keys.left(id), s.options.TTL)
	}
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
