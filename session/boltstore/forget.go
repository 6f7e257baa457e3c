package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Forget implements session.Archive. All goes in one commit, and it returns after the fsync. The file's pages that were in
// use are free then, but not overwritten until they are used again.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	var ids []session.ThreadID
	err := s.change(ctx, true, func(c *change) (err error) {
		ids, err = forgetSession(c, id)
		return err
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

// forgetSession gives the session's threads.
func forgetSession(c *change, id session.SessionID) ([]session.ThreadID, error) {
	stored := c.get(sessions.key(string(id)))
	if stored == nil {
		return nil, session.ErrNotFound
	}
	ses, err := codec.ParseSession(stored)
	if err != nil {
		return nil, fmt.Errorf("session record: %w", err)
	}
	for _, key := range c.beginning(unlisted.of(string(id))) {
		ses.Threads = append(ses.Threads, session.ThreadID(c.get(key)))
		c.delete(key)
	}
	c.delete(sessions.key(string(id)))
	for _, thread := range ses.Threads {
		rec, err := c.thread(thread)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		forgetThread(c, rec)
	}
	return ses.Threads, nil
}

// forgetThread deletes a thread with all that it left, and gives the bytes that are free then.
func forgetThread(c *change, rec record) (freed int64) {
	t := rec.thread
	freed += c.delete(prepared(t.ID))
	list, _ := codec.ParseList(rec.list) // a damaged one has no summaries that could be read
	for _, condensation := range list {
		if condensation.ID.Thread == t.ID {
			freed += c.delete(summaries.entry(t.ID, condensation.ID.Seq))
		}
	}
	for seq := uint64(1); seq <= t.Seq; seq++ {
		entry := events.entry(t.ID, seq)
		if chain, err := codec.ChainOf(c.get(entry)); err == nil && !chain.IsZero() {
			freed += c.deleteIndex(places.hash(chain), t.ID)
		}
		freed += c.delete(entry)
	}
	for _, key := range c.beginning(marked.of(string(t.ID))) {
		for left := c.get(key); len(left) >= len(session.Hash{}); left = left[len(session.Hash{}):] {
			freed += c.deleteIndex(traces.hash(session.Hash(left[:len(session.Hash{})])), t.ID)
		}
		freed += c.delete(key)
	}
	return freed + c.delete(savings.key(string(t.ID))) + c.delete(threads.key(string(t.ID))) + leave(c, t)
}

// deleteIndex deletes a place or a trace, unless it points to another thread by now.
func (c *change) deleteIndex(key string, thread session.ThreadID) (freed int64) {
	if p, err := codec.ParsePlace(c.get(key)); err == nil && p.Thread == thread {
		freed = c.delete(key)
	}
	return freed
}

// leave takes t off its session's record, and deletes that with its last thread.
func leave(c *change, t session.Thread) (freed int64) {
	key := sessions.key(string(t.Session))
	ses, err := codec.ParseSession(c.get(key))
	if err != nil {
		return 0 // it has none
	}
	freed = c.delete(unlisted.pair(ses.ID, t.ID))
	ses.Threads = slices.DeleteFunc(ses.Threads, func(id session.ThreadID) bool { return id == t.ID })
	if len(ses.Threads) == 0 {
		return freed + c.delete(key)
	}
	c.put(key, codec.Session(ses))
	return freed
}

// beginning lists the keys that begin with a prefix, on disk and queued, but for those that the step itself has put. It goes through the
// whole queue.
func (r *reader) beginning(prefix string) []string {
	found := map[string]bool{}
	kind, name := split(prefix)
	cursor := r.tx.Bucket(kind).Cursor()
	for key, _ := cursor.Seek(name); bytes.HasPrefix(key, name); key, _ = cursor.Next() {
		found[prefix[:1]+string(key)] = true
	}
	for _, queue := range [...]map[string][]byte{r.pending.queued, r.pending.committing} {
		for key := range queue {
			if strings.HasPrefix(key, prefix) {
				found[key] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(found)), func(key string) bool { return r.get(key) == nil })
}
