package boltstore

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

func notice(n session.Notice) string {
	key := binary.BigEndian.AppendUint64([]byte(outbox.prefix(n.Tenant)), uint64(n.Made.UnixNano())) //nolint:gosec // the same 64 bits
	return string(append(key, n.Thread...))
}

// parseNotice parses the name of a record in the outbox, or returns ErrCorrupt.
func parseNotice(name []byte) (n session.Notice, err error) {
	tenant := owner(name)
	rest := name[min(len(name), len(outbox.prefix(tenant))-1):]
	if len(rest) < 8 {
		return n, codec.ErrCorrupt
	}
	made := time.Unix(0, int64(binary.BigEndian.Uint64(rest))) //nolint:gosec // the same 64 bits
	return session.Notice{Tenant: tenant, Thread: session.ThreadID(rest[8:]), Made: made}, nil
}

// Enqueue implements session.Store. The notice is committed no later than the condensation, which is queued after it.
func (s *Store) Enqueue(ctx context.Context, n session.Notice, limit int) (added bool, err error) {
	err = s.change(ctx, false, func(c *change) error {
		added = c.get(notice(n)) != nil || len(c.keysWithPrefix(outbox.prefix(n.Tenant))) < limit
		if added {
			c.put(notice(n), []byte{1})
		}
		return nil
	})
	return added, err
}

func (s *Store) Dequeue(ctx context.Context, n session.Notice) error {
	return s.change(ctx, false, func(c *change) error {
		c.delete(notice(n))
		return nil
	})
}

func (s *Store) Enqueued(ctx context.Context, tenant string, from, limit int) (found []session.Notice, total int, err error) {
	err = s.read(ctx, func(r *reader) error {
		all := r.keysWithPrefix(outbox.prefix(tenant))
		slices.Sort(all) // by time
		total = len(all)
		for _, key := range all[min(from, total):min(from+limit, total)] {
			n, err := parseNotice([]byte(key[1:]))
			if err != nil {
				return err
			}
			found = append(found, n)
		}
		return nil
	})
	return found, total, err
}
