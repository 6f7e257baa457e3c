package redisstore

import (
	"context"
	"fmt"
	"slices"

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
	for _, c := range t.Listed() {
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
	fields, err := s.fields(ctx, s.keys.thread(id), "k", "l")
	if err != nil {
		return nil, "", err
	}
	return session.Parted[session.ThreadID](fields[0]), fields[1], nil
}

// keep renews, with a thread's lease, those of the threads that it shares the logs of, and now and then writes the secret.
func (s *Store) keep(ctx context.Context, b session.Batch, l logged) error {
	secret := s.secret.due()
	renew := l.renewed && len(l.shared) > 0
	if !renew && len(secret) == 0 {
		return nil
	}
	return s.pipe(ctx, func(pipe redis.Pipeliner, _ runner) {
		if renew {
			s.renew(ctx, pipe, b, l.shared)
		}
		if len(secret) > 0 {
			pipe.SetNX(ctx, s.keys.secret(), []byte(secret), 0)
		}
	})
}

// renew keeps threads for as long as the one that shares their logs, and their names where its session does not list them.
func (s *Store) renew(ctx context.Context, pipe redis.Pipeliner, b session.Batch, ids []session.ThreadID) {
	names := redis.ZAddArgs{XX: true}
	for _, id := range ids {
		names.Members = append(names.Members, redis.Z{Score: float64(b.Thread.Seen.UnixMilli()), Member: string(id)})
	}
	if b.Thread.Session != "" {
		pipe.ZAddArgs(ctx, s.keys.unlisted(b.Thread.Session), names)
	}
	if s.options.TTL == 0 {
		return
	}
	for _, id := range ids {
		for _, key := range s.written(id) {
			pipe.PExpire(ctx, key, s.lease())
		}
	}
}
