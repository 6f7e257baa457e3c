package boltstore

import (
	"context"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const (
	sweepThreads = 4    // deleted in one step
	sweepPlaces  = 4096 // looked at in one read
)

// sweepEvery deletes what has expired. An error (a full disk, a closing store) leaves the rest to the next turn.
func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.sweep(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// sweep deletes expired threads whole, then the places and traces that point to no thread any more.
func (s *Store) sweep(ctx context.Context) error {
	before := time.Now().Add(-s.options.TTL)
	expired, err := s.expired(before)
	if err != nil || len(expired) == 0 {
		return err
	}
	for ids := range slices.Chunk(expired, sweepThreads) {
		err := s.change(ctx, true, func(c *change) error { return forget(c, ids, before) })
		if err != nil {
			return err
		}
	}
	for _, b := range [...]bucket{places, traces} {
		if err := s.sweepPlaces(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// expired lists the threads last written before the given time, save those that a younger thread was forked from: it
// shares their events and summaries.
func (s *Store) expired(before time.Time) ([]session.ThreadID, error) {
	old := map[session.ThreadID]session.ThreadID{} // with their parents
	var needed []session.ThreadID
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(threads.name()).ForEach(func(_, value []byte) error {
			rec, err := parseRecord(value)
			if err != nil {
				return err
			}
			if rec.written.Before(before) {
				old[rec.thread.ID] = rec.thread.Parent
			} else {
				needed = append(needed, rec.thread.Parent)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return without(old, needed), nil
}

// without is the keys of old less the needed ones and their ancestors.
func without(old map[session.ThreadID]session.ThreadID, needed []session.ThreadID) []session.ThreadID {
	for _, id := range needed {
		for parent, ok := old[id]; ok; parent, ok = old[id] {
			delete(old, id)
			id = parent
		}
	}
	ids := make([]session.ThreadID, 0, len(old))
	for id := range old {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// forget deletes threads, unless they were written to meanwhile.
func forget(c *change, ids []session.ThreadID, before time.Time) error {
	for _, id := range ids {
		stored := c.get(threads.key(string(id)))
		if stored == nil {
			continue
		}
		rec, err := parseRecord(stored)
		if err != nil {
			return err
		}
		if rec.written.Before(before) {
			forgetThread(c, rec)
		}
	}
	return nil
}

func forgetThread(c *change, rec record) {
	t := rec.thread
	list, _ := codec.ParseList(rec.list) // a damaged one has no summaries that anybody could read
	for _, condensation := range list {
		if condensation.ID.Thread == t.ID {
			c.delete(summaries.entry(t.ID, condensation.ID.Seq))
		}
	}
	for seq := uint64(1); seq <= t.Seq; seq++ {
		c.delete(events.entry(t.ID, seq))
	}
	c.delete(threads.key(string(t.ID)))
	leave(c, t)
}

// leave takes t off its session's record, and deletes that with its last thread.
func leave(c *change, t session.Thread) {
	key := sessions.key(string(t.Session))
	ses, err := codec.ParseSession(c.get(key))
	if err != nil {
		return // it has none
	}
	ses.Threads = slices.DeleteFunc(ses.Threads, func(id session.ThreadID) bool { return id == t.ID })
	if len(ses.Threads) == 0 {
		c.delete(key)
		return
	}
	c.put(key, codec.Session(ses))
}

// sweepPlaces goes through a bucket of places in short reads, because a long one keeps freed pages from being reused.
func (s *Store) sweepPlaces(ctx context.Context, b bucket) error {
	for from := []byte{}; from != nil; {
		var orphans []string
		err := s.db.View(func(tx *bolt.Tx) error {
			orphans, from = orphaned(tx, b, from)
			return nil
		})
		if err != nil {
			return err
		}
		if len(orphans) == 0 {
			continue
		}
		err = s.change(ctx, true, func(c *change) error {
			deleteOrphans(c, orphans)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orphaned lists the keys of places without a thread, and where to go on (nil: at the end).
func orphaned(tx *bolt.Tx, b bucket, from []byte) (orphans []string, next []byte) {
	cursor, seen := tx.Bucket(b.name()).Cursor(), 0
	for key, value := cursor.Seek(from); key != nil; key, value = cursor.Next() {
		if seen++; seen > sweepPlaces {
			return orphans, slices.Clone(key)
		}
		p, err := codec.ParsePlace(value)
		if err != nil || tx.Bucket(threads.name()).Get([]byte(p.Thread)) == nil {
			orphans = append(orphans, b.key(string(key)))
		}
	}
	return orphans, nil
}

// deleteOrphans looks at each again, because its thread may have begun, or it may have been overwritten, since.
func deleteOrphans(c *change, keys []string) {
	for _, key := range keys {
		p, err := codec.ParsePlace(c.get(key))
		if err != nil || c.get(threads.key(string(p.Thread))) == nil {
			c.delete(key)
		}
	}
}
