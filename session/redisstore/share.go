package redisstore

import (
	"context"
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
	ancestors, point, err := s.kept(ctx, t.Parent)
	if err == nil && !is(point, b.ParentCreated) {
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

// kept reads which threads a thread keeps alive, and its point, empty if it is gone.
func (s *Store) kept(ctx context.Context, id session.ThreadID) (ids []session.ThreadID, point string, err error) {
	var fields []any
	err = s.read(ctx, func(ctx context.Context) (err error) {
		fields, err = s.client.HMGet(ctx, s.keys.thread(id), "k", "l").Result()
		return err
	})
	if err != nil {
		return nil, "", err
	}
	shared, _ := fields[0].(string)
	point, _ = fields[1].(string)
	return splitIDs(shared), point, nil
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
