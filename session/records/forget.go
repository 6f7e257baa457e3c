package records

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// left holds, for each deleted thread, the index entries that it may have left.
type left map[session.ThreadID][]store.EntryKey

// Forget implements session.Archive. It deletes the threads, and then the session. If it is interrupted, it can be called again.
//
// Where index entries may arrive late, it deletes them again when all that were under way must have arrived, and therefore takes as long as a
// write may.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	all := left{}
	existed, err := s.forget(ctx, id, all)
	if err != nil {
		return err
	}
	if !existed {
		return session.ErrNotFound
	}
	late := s.store.Late()
	if late == 0 {
		return nil
	}
	select {
	case <-time.After(late):
		return s.forgetLate(ctx, id, all)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget deletes the session with all its threads, those too that begin meanwhile, and reports whether there was any.
func (s *Store) forget(ctx context.Context, id session.SessionID, all left) (existed bool, err error) {
	s.sessions.Remove(id)
	for range maxTries {
		counts := []string{"v", store.End(logThreads), store.End(logJournal)}
		rec, err := s.one(ctx, sessionKey(id), append(counts, "r")...)
		if err != nil || !rec.Exists() {
			return existed, err
		}
		j, err := parseJoined(id, rec)
		if err != nil {
			return existed, err
		}
		if err := s.deleteNames(ctx, id); err != nil {
			return existed, err
		}
		var log []string
		err = s.eachEntry(ctx, sessionKey(id), logThreads, func(_ uint64, thread string) { log = append(log, thread) })
		if err != nil {
			return existed, err
		}
		for _, thread := range threadsOf(j.first, log) {
			deleted, err := s.deleteThread(ctx, thread, id, all)
			if err != nil {
				return existed, err
			}
			existed = existed || deleted
		}
		existed = existed || rec.Fields["v"] != ""
		result, err := s.clearSession(ctx, id, rec, counts)
		if err != nil || result.OK() {
			return existed, err
		}
	}
	return existed, errBusy
}

// dropsOf is how many index entries are deleted in one commit.
const dropsOf = 2048

// deleteThread deletes a thread of a session with everything that is kept for it, unless another session has it.
func (s *Store) deleteThread(ctx context.Context, id session.ThreadID, of session.SessionID, all left) (deleted bool, err error) {
	for range maxTries {
		rec, err := s.one(ctx, threadKey(id), "r", "l", store.End(logEvents), store.End(logLeft), store.Recent)
		if err != nil || !rec.Exists() {
			return false, err
		}
		if t, err := codec.ParseThread([]byte(rec.Fields["r"])); err == nil && t.Session != of {
			return false, nil
		}
		keys, err := s.leftBy(ctx, id, rec)
		if err != nil {
			return false, err
		}
		all[id] = slices.Concat(all[id], keys)
		var conds []store.Cond
		for _, name := range []string{"l", store.End(logEvents), store.End(logLeft), store.Recent} {
			conds = append(conds, is(name, rec.Fields[name]))
		}
		for len(keys) > dropsOf {
			if err := s.drop(ctx, id, keys[:dropsOf]); err != nil {
				return false, err
			}
			keys = keys[dropsOf:]
		}
		result, err := s.store.Commit(ctx, store.Commit{
			Parts: []store.Part{{Key: threadKey(id), If: conds, Clear: true, Unlock: true}}, Drop: keys, Owner: string(codec.InThread(id)),
		})
		if err != nil || result.OK() {
			return err == nil, err
		}
	}
	return false, errBusy
}

// leftBy returns the index entries that a thread may have left.
func (s *Store) leftBy(ctx context.Context, id session.ThreadID, rec store.Record) (keys []store.EntryKey, err error) {
	err = s.eachEntry(ctx, threadKey(id), logEvents, func(_ uint64, entry string) {
		chains, _ := codec.ChainsOf([]byte(entry)) // none of a damaged entry
		for _, h := range chains {
			keys = append(keys, placeKey(h))
		}
	})
	if err != nil {
		return nil, err
	}
	keys = append(keys, store.SplitKeys(rec.Fields[store.Recent], kindTrace)...)
	return keys, s.eachEntry(ctx, threadKey(id), logLeft, func(_ uint64, entry string) {
		if entry[0] == leftTraces {
			keys = append(keys, store.SplitKeys(entry[1:], kindTrace)...)
		}
	})
}

// drop deletes index entries that belong to a thread.
func (s *Store) drop(ctx context.Context, id session.ThreadID, keys []store.EntryKey) error {
	for chunk := range slices.Chunk(keys, dropsOf) {
		_, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{{Key: threadKey(id)}}, Drop: chunk, Owner: string(codec.InThread(id))})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetLate deletes the results of writes that were under way when the session was deleted.
func (s *Store) forgetLate(ctx context.Context, id session.SessionID, all left) error {
	ses, err := s.Session(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		err = s.tidy(ctx, id) // there may be a record without a thread
	case err == nil:
		for _, thread := range ses.Threads {
			delete(all, thread) // it has begun again
		}
	}
	for thread, keys := range all {
		if err == nil {
			err = s.drop(ctx, thread, keys)
		}
	}
	return err
}

// tidy deletes a session none of whose threads exist.
func (s *Store) tidy(ctx context.Context, id session.SessionID) error {
	counts := []string{"v", store.End(logThreads), store.End(logJournal)}
	rec, err := s.one(ctx, sessionKey(id), append(counts, "r")...)
	if err != nil || !rec.Exists() {
		return err
	}
	if lives, err := s.anyLives(ctx, id, rec); lives || err != nil {
		return err
	}
	s.sessions.Remove(id)
	if err := s.deleteNames(ctx, id); err != nil {
		return err
	}
	_, err = s.clearSession(ctx, id, rec, counts)
	return err
}

// anyLives reports whether a thread that the session's record or its log names exists.
func (s *Store) anyLives(ctx context.Context, id session.SessionID, rec store.Record) (bool, error) {
	j, err := parseJoined(id, rec)
	if err != nil {
		return false, err
	}
	var log []string
	err = s.eachEntry(ctx, sessionKey(id), logThreads, func(_ uint64, thread string) { log = append(log, thread) })
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(threadsOf(j.first, log), session.MaxThreads) {
		q := store.Query{}
		for _, thread := range some {
			q.Records = append(q.Records, store.Select{Key: threadKey(thread), Fields: []string{"r"}})
		}
		found, err := s.store.Read(ctx, q)
		if err != nil || slices.ContainsFunc(found.Records, store.Record.Exists) {
			return err == nil, err
		}
	}
	return false, nil
}

// clearSession deletes a session's record and logs, if the fields named are still as they were read.
func (s *Store) clearSession(ctx context.Context, id session.SessionID, rec store.Record, unchanged []string) (store.Result, error) {
	part := store.Part{Key: journaledKey(id), Clear: true}
	for _, name := range unchanged {
		part.If = append(part.If, is(name, rec.Fields[name]))
	}
	return s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}})
}

// A session whose key is used forever has more and more threads, most of which have expired. Now and then a new thread has the oldest ones that
// do not exist any more forgotten.
const (
	trimOf   = 256 // threads that this process has begun, of which one does that
	trimPage = 512
)

// trim forgets the oldest threads of a session, if it has just added one to the log. If that fails, a later one does it.
func (s *Store) trim(ctx context.Context, j joined, part store.Part) {
	if len(part.Log) == 0 || j.begun%trimOf > 0 {
		return
	}
	page, err := s.store.Log(ctx, store.LogQuery{Key: part.Key, Log: logThreads, At: 1, Limit: trimPage, Bytes: pageBytes})
	if err != nil || len(page.Entries) < trimPage {
		return
	}
	q := store.Query{}
	for _, thread := range page.Entries {
		q.Records = append(q.Records, store.Select{Key: threadKey(session.ThreadID(thread)), Fields: []string{"l"}})
	}
	found, err := s.store.Read(ctx, q)
	if err != nil {
		return
	}
	n := slices.IndexFunc(found.Records, store.Record.Exists)
	if n < 0 {
		n = len(page.Entries)
	}
	if n == 0 {
		return
	}
	left := int(page.End-page.First) + 1 - n //nolint:gosec // entries of a log
	_, _ = s.store.Commit(ctx, store.Commit{Parts: []store.Part{{
		Key: part.Key, If: []store.Cond{is(store.End(logThreads), strconv.FormatUint(page.End, 10))},
		Trim: []store.Trim{{Log: logThreads, Keep: max(left, 1)}},
	}}})
}
