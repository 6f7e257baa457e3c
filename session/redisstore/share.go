package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// needed returns the threads without which b's thread would be incomplete if b begins it: the parent of a fork, which comes first, and
// those that store its content.
func needed(b session.Batch) (ids []session.ThreadID) {
	if forks(b) {
		ids = append(ids, b.Thread.Parent)
	}
	if codec.Begins(b) {
		ids = appendShared(ids, b.Thread.ID, b.Thread.Shares...)
	}
	return ids
}

// sharedBy returns the threads whose events or summaries b's thread needs if b begins it: the parent of a fork, all threads
// that the parent shares, those that store its content, and the makers of the condensations that it inherits. If the parent of a fork is
// gone, sharedBy returns ErrStale, because the fork would be incomplete.
func (s *Store) sharedBy(ctx context.Context, b session.Batch) ([]session.ThreadID, error) {
	t := b.Thread
	var ids []session.ThreadID
	if t.ForkAt > 0 && t.Parent != "" {
		ids = append(ids, t.Parent)
	}
	ids = appendShared(ids, t.ID, t.Shares...)
	for _, c := range t.Listed() {
		ids = appendShared(ids, t.ID, c.ID.Thread)
	}
	if !forks(b) {
		return ids, nil
	}
	fields, err := s.fields(ctx, s.keys.thread(t.Parent), "k", "l")
	if err != nil {
		return nil, err
	}
	ancestors, point := session.Parted[session.ThreadID](fields[0]), fields[1]
	if !pointOf(point, b.ParentCreated) {
		return nil, fmt.Errorf("%w: the fork needs thread %s, which is gone", session.ErrStale, t.Parent)
	}
	return appendShared(ids, t.ID, ancestors...), nil
}

// appendShared appends those of more that are not in ids yet and are not the thread itself.
func appendShared(ids []session.ThreadID, self session.ThreadID, more ...session.ThreadID) []session.ThreadID {
	for _, id := range more {
		if id != self && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// maintain renews the leases of the threads whose logs b's thread shares, if the append renewed its own lease.
func (s *Store) maintain(ctx context.Context, b session.Batch, result appended) error {
	if !result.renewed || len(result.shared) == 0 {
		return nil
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) { s.renew(ctx, pipe, b, result.shared) })
}

// renew renews the leases of threads that b's thread shares, and their entries among the unlisted threads of its session.
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
		for _, key := range s.threadKeys(id) {
			pipe.PExpire(ctx, key, s.lease())
		}
	}
}
