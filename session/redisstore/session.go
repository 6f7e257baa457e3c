package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// joinSession returns the script that adds b's thread to its session's record. set is the command to set fields with, HSET
// or HSETNX; update is whether to update an existing record.
func (s *Store) joinSession(b session.Batch, set string, update bool) script {
	args := append([]any{s.lease().Milliseconds(), update, set}, joinArgs(b)...)
	return script{sessionScript, []string{s.keys.session(b.Thread.Session), s.keys.unlisted(b.Thread.Session)}, args}
}

// joinArgs returns the arguments of the scripts' join. The first is empty if b has no session.
func joinArgs(b session.Batch) []any {
	t := b.Thread
	id := string(t.ID)
	if t.Session == "" {
		id = ""
	}
	return []any{id, t.Tenant, b.Key, stamp(t.Created), stamp(t.Seen), session.MaxThreads, t.Seen.UnixMilli(), session.MaxNames}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Session implements session.Store. It takes two round trips, because a session's threads may expire before its record.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	all, err := s.sessions(ctx, []string{s.keys.session(id)})
	if err != nil {
		return session.Session{}, err
	}
	if len(all[0].Threads) == 0 {
		return session.Session{}, session.ErrNotFound // a record whose threads have expired counts as expired
	}
	return all[0], nil
}

// sessions reads the sessions under the given keys with those of their threads that still exist.
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
	return all, s.dropExpired(ctx, all)
}

// parseSession returns a session without threads if there is no record.
func parseSession(id session.SessionID, fields map[string]string) (ses session.Session, err error) {
	if len(fields) == 0 {
		return ses, nil
	}
	threads := numbered[session.ThreadID](fields, "t:")
	ses = session.Session{
		ID: id, Tenant: fields["tenant"], Key: fields["key"], Names: numbered[string](fields, "k:"),
		Threads: threads[max(0, len(threads)-session.MaxThreads):],
	}
	ses.Requests, _ = strconv.Atoi(fields["requests"])
	ses.Created, err = time.Parse(time.RFC3339Nano, fields["created"])
	if err == nil {
		ses.Seen, err = time.Parse(time.RFC3339Nano, fields["seen"])
	}
	if err != nil {
		return ses, fmt.Errorf("session record: %w", err)
	}
	return ses, nil
}

// numbered returns the names of the fields that begin with a prefix, without it, in the order of the numbers that they hold.
func numbered[T ~string](fields map[string]string, prefix string) []T {
	order := map[T]int{}
	for field, value := range fields {
		if name, ok := strings.CutPrefix(field, prefix); ok {
			order[T(name)], _ = strconv.Atoi(value)
		}
	}
	return slices.SortedFunc(maps.Keys(order), func(a, b T) int {
		return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(a, b))
	})
}

// dropExpired removes expired threads from each session. It updates when the session was last seen from the others, because
// a session's record is not written with each step.
func (s *Store) dropExpired(ctx context.Context, all []session.Session) error {
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
