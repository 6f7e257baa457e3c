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
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// join puts b's thread into its session's record: by which command, HSET or HSETNX, and whether it is time to write again what is
// there.
func (s *Store) join(b session.Batch, set string, due bool) script {
	args := append([]any{s.lease().Milliseconds(), due, set}, joinArgs(b)...)
	return script{sessionScript, []string{s.keys.session(b.Thread.Session), s.keys.unlisted(b.Thread.Session)}, args}
}

// joinArgs are those of the scripts' join; without a session the first is empty.
func joinArgs(b session.Batch) []any {
	t := b.Thread
	id := string(t.ID)
	if t.Session == "" {
		id = ""
	}
	return []any{id, t.Tenant, b.Key, stamp(t.Created), stamp(t.Seen), session.MaxThreads, t.Seen.UnixMilli()}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Session implements session.Store. It is two round trips, because a session's threads may have expired before it.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	all, err := s.sessions(ctx, []string{s.keys.session(id)})
	if err != nil {
		return session.Session{}, err
	}
	if len(all[0].Threads) == 0 {
		return session.Session{}, session.ErrNotFound // or as good as expired
	}
	return all[0], nil
}

// sessions reads the sessions under keys, each with its living threads: one that has none is as good as expired.
func (s *Store) sessions(ctx context.Context, keys []string) ([]session.Session, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	records := make([]*redis.MapStringStringCmd, len(keys))
	err := s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, key := range keys {
			records[i] = pipe.HGetAll(ctx, key)
		}
	})
	all := make([]session.Session, len(keys))
	for i := 0; i < len(keys) && err == nil; i++ {
		all[i], err = parseSession(s.keys.sessionOf(keys[i]), records[i].Val())
	}
	if err != nil {
		return nil, err
	}
	return all, s.living(ctx, all)
}

// parseSession gives a session without threads where there is no record.
func parseSession(id session.SessionID, fields map[string]string) (ses session.Session, err error) {
	if len(fields) == 0 {
		return ses, nil
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

// living takes those threads off each session that have expired. The others tell when it was last seen: its record is not
// written with each step.
func (s *Store) living(ctx context.Context, all []session.Session) error {
	records := map[session.ThreadID]*redis.StringCmd{}
	err := s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		for i := range all {
			for _, id := range all[i].Threads {
				records[id] = pipe.HGet(ctx, s.keys.thread(id), "r")
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range all {
		ses := &all[i]
		ids := ses.Threads
		ses.Threads = nil
		for _, id := range ids {
			if absent(records[id].Err()) {
				continue
			}
			thread, err := codec.ParseThread([]byte(records[id].Val()))
			if err != nil {
				return fmt.Errorf("thread record: %w", err)
			}
			if thread.Seen.After(ses.Seen) {
				ses.Seen = thread.Seen
			}
			ses.Threads = append(ses.Threads, id)
		}
	}
	return nil
}
