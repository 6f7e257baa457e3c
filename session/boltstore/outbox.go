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

// In the outbox, a record with the number of a tenant's notices comes first, followed by the notices, ordered by time.

func notice(n session.Notice) string {
	key := binary.BigEndian.AppendUint64([]byte(outbox.prefix(n.Tenant)), uint64(n.Made.UnixNano())) // the same 64 bits
	return string(append(key, n.Thread...))
}

// parseNotice parses the name of a record in the outbox. It returns false for the number of a tenant's notices.
func parseNotice(name []byte) (n session.Notice, ok bool) {
	tenant := owner(name)
	rest := name[len(outbox.prefix(tenant))-1:]
	if len(rest) < 8 {
		return n, false
	}
	made := time.Unix(0, int64(binary.BigEndian.Uint64(rest))) //nolint:gosec // the same 64 bits
	return session.Notice{Tenant: tenant, Thread: session.ThreadID(rest[8:]), Made: made}, true
}

// noticeCount returns the number of a tenant's notices.
func (c *change) noticeCount(tenant string) (n int64, err error) {
	if value := c.get(outbox.prefix(tenant)); value != nil {
		err = parseNumbers(value, &n)
	}
	return n, err
}

// Enqueue implements session.Store. The notice is committed no later than the condensation, which is queued after it.
func (s *Store) Enqueue(ctx context.Context, n session.Notice, limit int) (added bool, err error) {
	err = s.change(ctx, false, func(c *change) error {
		if c.get(notice(n)) != nil {
			added = true
			return nil
		}
		waiting, err := c.noticeCount(n.Tenant)
		if err != nil || waiting >= int64(limit) {
			return err
		}
		added = true
		c.put(notice(n), []byte{1})
		c.put(outbox.prefix(n.Tenant), numbers(waiting+1))
		return nil
	})
	return added, err
}

func (s *Store) Dequeue(ctx context.Context, n session.Notice) error {
	return s.change(ctx, false, func(c *change) error {
		waiting, err := c.noticeCount(n.Tenant)
		if err != nil || c.get(notice(n)) == nil {
			return err
		}
		c.delete(notice(n))
		c.put(outbox.prefix(n.Tenant), numbers(waiting-1))
		return nil
	})
}

// Enqueued implements session.Store. It waits until everything queued is on disk.
func (s *Store) Enqueued(ctx context.Context, tenant string, from, limit int) (found []session.Notice, total int, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, 0, err
	}
	err = s.view(func(tx *bolt.Tx) error {
		_, prefix := split(outbox.prefix(tenant))
		cursor := tx.Bucket(outbox.name()).Cursor()
		key, value := cursor.Seek(prefix)
		if !bytes.Equal(key, prefix) {
			return nil
		}
		var waiting int64
		if err := parseNumbers(value, &waiting); err != nil {
			return err
		}
		total = int(waiting)
		for key, _ = cursor.Next(); bytes.HasPrefix(key, prefix) && len(found) < limit; key, _ = cursor.Next() {
			n, ok := parseNotice(key)
			if !ok {
				return codec.ErrCorrupt
			}
			if from > 0 {
				from--
				continue
			}
			found = append(found, n)
		}
		return nil
	})
	return found, total, err
}
