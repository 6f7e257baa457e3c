package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// join puts b's thread, which shares the logs of others, into its session's record, with HSET or HSETNX.
func (s *Store) join(ctx context.Context, pipe redis.Pipeliner, b session.Batch, shared []session.ThreadID, set string) {
	t := b.Thread
	args := []any{
		string(t.ID), t.Tenant, b.Key, stamp(t.Created), stamp(t.Seen), s.options.TTL.Milliseconds(),
		session.MaxThreads, t.Seen.UnixMilli(), set,
	}
	for _, id := range shared {
		args = append(args, string(id))
	}
	pipe.Eval(ctx, sessionScript, []string{s.keys.session(t.Session), s.keys.unlisted(t.Session)}, args...)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Session implements session.Store. It is two round trips, because a session's threads may have expired before it.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	var fields map[string]string
	err := s.read(ctx, func(ctx context.Context) (err error) {
		fields, err = s.client.HGetAll(ctx, s.keys.session(id)).Result()
		return err
	})
	var ses session.Session
	if err == nil {
		ses, err = parseSession(id, fields)
	}
	if err == nil {
		ses.Threads, err = s.living(ctx, ses.Threads)
	}
	if err == nil && len(ses.Threads) == 0 {
		err = session.ErrNotFound // as good as expired
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("session %s: %w", id, err)
	}
	return ses, nil
}

func parseSession(id session.SessionID, fields map[string]string) (ses session.Session, err error) {
	if len(fields) == 0 {
		return ses, session.ErrNotFound
	}
	ses = session.Session{ID: id, Tenant: fields["tenant"], Key: fields["key"], Threads: threadsOf(fields)}
	if ses.Created, err = time.Parse(time.RFC3339Nano, fields["created"]); err != nil {
		return ses, fmt.Errorf("session record: %w", err)
	}
	if ses.Seen, err = time.Parse(time.RFC3339Nano, fields["seen"]); err != nil {
		return ses, fmt.Errorf("session record: %w", err)
	}
	return ses, nil
}

// threadsOf lists the newest threads in the order in which they began.
func threadsOf(fields map[string]string) []session.ThreadID {
	var ids []session.ThreadID
	order := map[session.ThreadID]int{}
	for field, value := range fields {
		if id, ok := strings.CutPrefix(field, "t:"); ok {
			ids = append(ids, session.ThreadID(id))
			order[session.ThreadID(id)], _ = strconv.Atoi(value)
		}
	}
	slices.SortFunc(ids, func(a, b session.ThreadID) int { return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(a, b)) })
	return ids[max(0, len(ids)-session.MaxThreads):]
}

// living is those of ids that have not expired.
func (s *Store) living(ctx context.Context, ids []session.ThreadID) ([]session.ThreadID, error) {
	there := make([]*redis.IntCmd, len(ids))
	err := s.read(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		for i, id := range ids {
			there[i] = pipe.Exists(ctx, s.keys.thread(id))
		}
		return failure(pipe.Exec(ctx))
	})
	if err != nil {
		return nil, err
	}
	var living []session.ThreadID
	for i, id := range ids {
		if there[i].Val() > 0 {
			living = append(living, id)
		}
	}
	return living, nil
}
