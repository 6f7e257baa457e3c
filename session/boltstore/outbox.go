package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// A tenant's notices lie by their time behind a record of how many there are.

func noticesOf(tenant string) string { return outbox.of(tenant) }

func notice(n session.Notice) string {
	key := binary.BigEndian.AppendUint64([]byte(noticesOf(n.Tenant)), uint64(n.Made.UnixNano())) //nolint:gosec // the same 64 bits
	return string(append(key, n.Thread...))
}

// parseNotice reads a key without its bucket; false: it is that of a tenant's number of notices.
func parseNotice(name []byte) (n session.Notice, is bool) {
	tenant := string(owner(name))
	rest := name[len(noticesOf(tenant))-1:]
	if len(rest) < 8 {
		return n, false
	}
	made := time.Unix(0, int64(binary.BigEndian.Uint64(rest))) //nolint:gosec // the same 64 bits
	return session.Notice{Tenant: tenant, Thread: session.ThreadID(rest[8:]), Made: made}, true
}

// notices is how many a tenant has.
func (c *change) notices(tenant string) (n int64, err error) {
	if value := c.get(noticesOf(tenant)); value != nil {
		err = parseNumbers(value, &n)
	}
	return n, err
}

// Enqueue implements session.Store. It goes with the next commit, which that of the condensation is not before.
func (s *Store) Enqueue(ctx context.Context, n session.Notice, limit int) (noted bool, err error) {
	err = s.change(ctx, false, func(c *change) error {
		noted = c.get(notice(n)) != nil
		waiting, err := c.notices(n.Tenant)
		if err != nil || noted || waiting >= int64(limit) {
			return err
		}
		noted = true
		c.put(notice(n), []byte{1})
		c.put(noticesOf(n.Tenant), numbers(waiting+1))
		return nil
	})
	return noted, err
}

func (s *Store) Dequeue(ctx context.Context, n session.Notice) error {
	return s.change(ctx, false, func(c *change) error {
		waiting, err := c.notices(n.Tenant)
		if err != nil || c.get(notice(n)) == nil {
			return err
		}
		c.delete(notice(n))
		c.put(noticesOf(n.Tenant), numbers(waiting-1))
		return nil
	})
}

// Enqueued implements session.Store. It waits until all that is queued is on disk.
func (s *Store) Enqueued(ctx context.Context, tenant string, from, limit int) (found []session.Notice, total int, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, 0, err
	}
	err = s.view(func(tx *bolt.Tx) error {
		_, prefix := split(noticesOf(tenant))
		cursor, waiting := tx.Bucket(outbox.name()).Cursor(), int64(0)
		key, value := cursor.Seek(prefix)
		if !bytes.Equal(key, prefix) {
			return nil
		}
		if err := parseNumbers(value, &waiting); err != nil {
			return err
		}
		total = int(waiting)
		for key, _ = cursor.Next(); bytes.HasPrefix(key, prefix) && len(found) < limit; key, _ = cursor.Next() {
			n, is := parseNotice(key)
			if !is {
				return codec.ErrCorrupt
			}
			if from--; from < 0 {
				found = append(found, n)
			}
		}
		return nil
	})
	return found, total, err
}
