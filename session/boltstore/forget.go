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

// Forget implements session.Archive. It deletes everything in one commit and returns after the fsync. The pages in the file become free, and
// keep their content until the file is compacted.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	var ids []session.ThreadID
	err := s.change(ctx, true, func(c *change) (err error) {
		ids, err = deleteSession(c, id)
		return err
	})
	if err != nil {
		return err
	}
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	for _, thread := range ids {
		delete(s.locks, thread)
	}
	return nil
}

// deleteSession deletes a session with its threads, whose ids it returns.
func deleteSession(c *change, id session.SessionID) ([]session.ThreadID, error) {
	stored := c.get(sessions.key(string(id)))
	if stored == nil {
		return nil, session.ErrNotFound
	}
	ses, err := codec.ParseSession(stored)
	if err != nil {
		return nil, fmt.Errorf("session record: %w", err)
	}
	for _, key := range c.keysWithPrefix(unlisted.prefix(string(id))) {
		ses.Threads = append(ses.Threads, session.ThreadID(c.get(key)))
		c.delete(key)
	}
	c.delete(sessions.key(string(id)))
	deleteJournal(c, id)
	for _, thread := range ses.Threads {
		switch rec, err := c.thread(thread); {
		case err == nil:
			deleteThread(c, rec)
		case !errors.Is(err, session.ErrNotFound):
			return nil, err
		}
	}
	return ses.Threads, nil
}

// deleteThread deletes a thread with its log, summaries, places and traces, and returns the number of bytes freed.
func deleteThread(c *change, rec record) (freed int64) {
	c.noteErased()
	t := rec.thread
	freed += c.delete(prepared(t.ID))
	list, _ := codec.ParseList(rec.list) // if the list is damaged, the summaries cannot be found
	for _, condensation := range list {
		if condensation.ID.Thread == t.ID {
			freed += c.delete(summaries.entry(t.ID, condensation.ID.Seq))
		}
	}
	for seq := uint64(1); seq <= t.Seq; seq++ {
		entry := events.entry(t.ID, seq)
		chains, _ := codec.ChainsOf(c.get(entry)) // none of a damaged entry
		for _, chain := range chains {
			freed += c.deleteIndex(places.hash(chain), t.ID)
		}
		freed += c.delete(entry)
	}
	for _, key := range c.keysWithPrefix(marked.prefix(string(t.ID))) {
		if !strings.HasPrefix(key, answeredPrefix(t.ID)) {
			for hash := range slices.Chunk(c.get(key), codec.ShortLen) {
				freed += c.deleteIndex(traces.key(string(hash)), t.ID)
			}
		}
		freed += c.delete(key)
	}
	freed += c.delete(savings.key(string(t.ID)))
	freed += c.delete(threads.key(string(t.ID)))
	return freed + leaveSession(c, t)
}

// deleteIndex deletes a place or a trace, unless it points to another thread now.
func (c *change) deleteIndex(key string, thread session.ThreadID) (freed int64) {
	if p, err := codec.ParsePlace(c.get(key), session.Place{}); err == nil && p.Thread == thread {
		freed = c.delete(key)
	}
	return freed
}

// leaveSession removes t from its session's record, and deletes the record with its last thread.
func leaveSession(c *change, t session.Thread) (freed int64) {
	key := sessions.key(string(t.Session))
	ses, err := codec.ParseSession(c.get(key))
	if err != nil {
		return 0 // it has no session
	}
	freed = c.delete(unlisted.pair(ses.ID, t.ID))
	ses.Threads = slices.DeleteFunc(ses.Threads, func(id session.ThreadID) bool { return id == t.ID })
	if len(ses.Threads) == 0 {
		return freed + deleteJournal(c, ses.ID) + c.delete(key)
	}
	c.put(key, codec.Session(ses))
	return freed
}

// keysWithPrefix returns the keys with a prefix, on disk and queued, except those that the step itself has put. It scans
// the whole queue.
func (r *reader) keysWithPrefix(prefix string) []string {
	found := map[string]bool{}
	kind, name := split(prefix)
	cursor := r.tx.Bucket(kind).Cursor()
	for key, _ := cursor.Seek(name); bytes.HasPrefix(key, name); key, _ = cursor.Next() {
		found[prefix[:1]+string(key)] = true
	}
	for _, writes := range [...]map[string][]byte{r.pending.queued, r.pending.committing} {
		for key := range writes {
			if strings.HasPrefix(key, prefix) {
				found[key] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(found)), func(key string) bool { return r.get(key) == nil })
}
