package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Forget implements session.Archive. All goes in one commit, and it returns after the fsync. The file's pages that were in
// use are free then, but not overwritten until they are used again.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	var ids []session.ThreadID
	err := s.change(ctx, true, func(c *change) error {
		stored := c.get(sessions.key(string(id)))
		if stored == nil {
			return session.ErrNotFound
		}
		ses, err := codec.ParseSession(stored)
		if err != nil {
			return fmt.Errorf("session record: %w", err)
		}
		for _, key := range c.beginning(string(unlisted.of(session.ThreadID(id), 0))) {
			ses.Threads = append(ses.Threads, session.ThreadID(c.get(key)))
		}
		ids = ses.Threads
		return erase(c, ses)
	})
	if err != nil {
		return err
	}
	s.locking.Lock()
	defer s.locking.Unlock()
	for _, thread := range ids {
		delete(s.locks, thread)
	}
	return nil
}

// erase deletes a session whole. It reads everything before it deletes anything.
func erase(c *change, ses session.Session) error {
	var records []record
	var indexes []string
	for _, id := range ses.Threads {
		rec, err := c.thread(id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		records = append(records, rec)
		indexes = append(indexes, c.indexesOf(rec.thread, ses.Threads)...)
	}
	for _, key := range indexes {
		c.delete(key)
	}
	for _, rec := range records {
		forgetThread(c, rec)
	}
	for _, id := range ses.Threads {
		c.deleteAny(unlisted.pair(ses.ID, id))
	}
	c.delete(sessions.key(string(ses.ID)))
	return nil
}

// indexesOf lists the keys of the places and traces that a thread left, as far as they still point to one of ids, and
// those by which they were found.
func (c *change) indexesOf(t session.Thread, ids []session.ThreadID) []string {
	var keys []string
	ours := func(key string) {
		p, err := codec.ParsePlace(c.get(key))
		if err == nil && slices.Contains(ids, p.Thread) {
			keys = append(keys, key)
		}
	}
	for seq := uint64(1); seq <= t.Seq; seq++ {
		chain, err := codec.ChainOf(c.get(events.entry(t.ID, seq)))
		if err == nil && !chain.IsZero() {
			ours(places.hash(chain))
		}
	}
	for _, key := range c.beginning(string(marked.of(t.ID, 0))) {
		for left := c.get(key); len(left) >= len(session.Hash{}); left = left[len(session.Hash{}):] {
			ours(traces.hash(session.Hash(left[:len(session.Hash{})])))
		}
		keys = append(keys, key)
	}
	return keys
}

// beginning lists the keys that begin with a prefix, on disk and queued. It goes through the whole queue.
func (c *change) beginning(prefix string) []string {
	found := map[string]bool{}
	kind, name := split(prefix)
	cursor := c.tx.Bucket(kind).Cursor()
	for key, _ := cursor.Seek(name); bytes.HasPrefix(key, name); key, _ = cursor.Next() {
		found[prefix[:1]+string(key)] = true
	}
	for _, queue := range [...]map[string][]byte{c.pending.committing, c.pending.queued, c.writes} {
		for key := range queue {
			if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
				found[key] = true
			}
		}
	}
	var keys []string
	for key := range found {
		if c.get(key) != nil {
			keys = append(keys, key)
		}
	}
	return keys
}
