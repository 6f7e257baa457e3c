package records

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// An outbox has a field for each notice, and one that counts them.
const waiting = "#"

// timeDigits is the length of the hexadecimal time with which a notice begins.
const timeDigits = 16

func outboxKey(tenant string) store.Key { return store.Key{Kind: kindOutbox, Group: tenant} }

func notice(n session.Notice) string { return fmt.Sprintf("%016x%s", n.Made.UnixNano(), n.Thread) }

func parseNotice(tenant, text string) (session.Notice, error) {
	if len(text) < timeDigits {
		return session.Notice{}, codec.ErrCorrupt
	}
	made, err := strconv.ParseInt(text[:timeDigits], 16, 64)
	if err != nil {
		return session.Notice{}, codec.ErrCorrupt
	}
	return session.Notice{Tenant: tenant, Thread: session.ThreadID(text[timeDigits:]), Made: time.Unix(0, made)}, nil
}

// Enqueue implements session.Store. The notice is as durable as the store makes commits.
func (s *Store) Enqueue(ctx context.Context, n session.Notice, limit int) (bool, error) {
	key, name := outboxKey(n.Tenant), notice(n)
	result, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{{
		Key: key, If: []store.Cond{is(name, ""), {Field: waiting, Test: store.Below, Limit: int64(limit)}},
		Set: []store.Field{set(name, "1")}, Add: []store.Count{{Name: waiting, N: 1}},
	}}})
	if err != nil || result.OK() {
		return err == nil, err
	}
	rec, err := s.one(ctx, key, name)
	return rec.Exists(), err
}

// Dequeue implements session.Store.
func (s *Store) Dequeue(ctx context.Context, n session.Notice) error {
	_, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{{
		Key: outboxKey(n.Tenant), If: []store.Cond{{Field: notice(n), Test: store.Exists}},
		Set: []store.Field{set(notice(n), "")}, Add: []store.Count{{Name: waiting, N: -1}},
	}}})
	return err
}

// Enqueued implements session.Store. An outbox is read whole: it has a limit.
func (s *Store) Enqueued(ctx context.Context, tenant string, from, limit int) (found []session.Notice, total int, err error) {
	rec, err := s.one(ctx, outboxKey(tenant))
	if err != nil {
		return nil, 0, err
	}
	delete(rec.Fields, waiting)
	names := slices.Sorted(maps.Keys(rec.Fields))
	total = len(names)
	names = names[min(from, total):]
	for _, text := range names[:min(limit, len(names))] {
		n, err := parseNotice(tenant, text)
		if err != nil {
			return nil, 0, fmt.Errorf("notice: %w", err)
		}
		found = append(found, n)
	}
	return found, total, nil
}
