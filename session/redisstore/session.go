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

// joining is how a thread is put into its session's record: by which command, HSET or HSETNX, and whether it is time to
// write again what is there.
type joining struct {
	set string
	due bool
}

// join puts b's thread into its session's record.
func (s *Store) join(ctx context.Context, pipe redis.Pipeliner, run runner, b session.Batch, how joining) {
	due := 0
	if how.due {
		due = 1
	}
	args := append([]any{s.lease().Milliseconds(), due, how.set}, joinArgs(b)...)
	run(s.scripts.session, ctx, pipe, []string{s.keys.session(b.Thread.Session), s.keys.unlisted(b.Thread.Session)}, args...)
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
	fields, err := result(ctx, s.read, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, s.keys.session(id)).Result()
	})
	var ses session.Session
	if err == nil {
		ses, err = parseSession(id, fields)
	}
	if err == nil {
		err = s.living(ctx, []*session.Session{&ses})
	}
	if err == nil && len(ses.Threads) == 0 {
		err = session.ErrNotFound // as good as expired
	}
	if err != nil {
		return session.Session{}, err
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

// living takes those threads off each session that have expired. The others tell when it was last seen: its record is not
// written with each step.
func (s *Store) living(ctx context.Context, all []*session.Session) error {
	records := map[session.ThreadID]*redis.StringCmd{}
	err := s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		for _, ses := range all {
			for _, id := range ses.Threads {
				records[id] = pipe.HGet(ctx, s.keys.thread(id), "r")
			}
		}
	})
	for _, ses := range all {
		if err == nil {
			err = alive(ses, records)
		}
	}
	return err
}

func alive(ses *session.Session, records map[session.ThreadID]*redis.StringCmd) error {
	var living []session.ThreadID
	for _, id := range ses.Threads {
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
		living = append(living, id)
	}
	ses.Threads = living
	return nil
}
