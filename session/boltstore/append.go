package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Append implements session.Store. It returns when the batch is queued. If the last commit failed or the queue is full, it
// waits, at most until ctx is done.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	if err := codec.CheckIDs(b.Thread.ID, b.Thread.Session); err != nil {
		return err
	}
	encoded := s.content.Events(b.Thread.ID, b.Events) // before the lock is taken
	return s.change(ctx, false, func(c *change) error { return appendBatch(c, b, encoded) })
}

func appendBatch(c *change, b session.Batch, encoded [][]byte) error {
	rec, err := nextRecord(c, b)
	if err != nil {
		return err
	}
	c.lasts = c.lasts || b.Thread.Purpose == session.PurposeKept
	if err := joinSession(c, b); err != nil {
		return err
	}
	for _, e := range encoded {
		rec.thread.Seq++
		c.put(events.entry(b.Thread.ID, rec.thread.Seq), e)
	}
	c.put(threads.key(string(b.Thread.ID)), rec.encode())
	for _, p := range b.Places {
		c.put(places.hash(p.Hash), codec.Place(p.Place))
	}
	for _, h := range b.Passed {
		c.deleteIndex(places.hash(h), b.Thread.ID)
	}
	mark(c, b.Traces, codec.Last(b))
	forgetTraces(c, b.Thread.ID)
	return nil
}

// nextRecord returns the thread's record as it is after the batch, except that Seq does not count the batch's events yet. It returns
// ErrStale if the batch does not fit the thread.
func nextRecord(c *change, b session.Batch) (record, error) {
	rec := record{written: time.Now(), thread: b.Thread}
	old, err := c.thread(b.Thread.ID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		rec.thread.Seq, rec.thread.Requested, rec.thread.Requests, rec.list = 0, 0, 1, codec.List(b.Thread.Listed())
		return rec, begin(c, b, rec)
	case err != nil:
		return rec, err
	case old.thread.Len != b.At:
		return rec, fmt.Errorf("%w: the thread is at %d, not %d", session.ErrStale, old.thread.Len, b.At)
	case !old.thread.Created.Equal(b.Thread.Created):
		return rec, fmt.Errorf("%w: the thread was deleted and began again", session.ErrStale)
	}
	rec.thread.Seq, rec.list, rec.thread.Requested = old.thread.Seq, old.list, old.thread.Requested
	rec.thread.Requests = old.thread.Requests + 1
	return rec, nil
}

// begin checks that a batch may begin its thread. If the thread needs others (see record.needs), begin updates their time of the last
// write, so that the sweeper sees that they are in use. If the thread would be incomplete because its parent, or a thread that stores its
// content, is gone or began again, begin returns ErrStale.
func begin(c *change, b session.Batch, rec record) error {
	c.lasts = true
	if !codec.Begins(b) {
		return fmt.Errorf("%w: the thread is unknown, not at %d", session.ErrStale, b.At)
	}
	if b.At == 0 && len(b.Thread.Shares) == 0 {
		return nil
	}
	needs, err := rec.needs()
	if err != nil {
		return fmt.Errorf("thread record: %w", err)
	}
	for _, id := range needs {
		needed, err := c.thread(id)
		lost := errors.Is(err, session.ErrNotFound)
		switch {
		case lost && id != b.Thread.Parent && !slices.Contains(b.Thread.Shares, id):
			continue // it only made a condensation that the thread inherits, which does not apply without its summary
		case lost:
			return fmt.Errorf("%w: the new thread needs thread %s, which is gone", session.ErrStale, id)
		case err != nil:
			return err
		case id == b.Thread.Parent && !b.ParentCreated.IsZero() && !needed.thread.Created.Equal(b.ParentCreated):
			return fmt.Errorf("%w: the new thread needs thread %s, which began again", session.ErrStale, id)
		}
		needed.written = rec.written
		c.put(threads.key(string(id)), needed.encode())
	}
	return nil
}

// joinSession adds the batch's thread to its session's record, if it has a session. The record lists the newest threads.
// The others are stored separately, so that they can be deleted with the session.
func joinSession(c *change, b session.Batch) error {
	t := b.Thread
	if t.Session == "" {
		return nil
	}
	key, ses := sessions.key(string(t.Session)), session.Session{ID: t.Session, Created: t.Created}
	if stored := c.get(key); stored != nil {
		var err error
		ses, err = codec.ParseSession(stored)
		if err != nil {
			return fmt.Errorf("session record: %w", err)
		}
	}
	if !slices.Contains(ses.Threads, t.ID) {
		c.delete(unlisted.pair(ses.ID, t.ID))
		ses.Threads = append(ses.Threads, t.ID)
		excess := max(0, len(ses.Threads)-session.MaxThreads)
		for _, old := range ses.Threads[:excess] {
			c.put(unlisted.pair(ses.ID, old), []byte(old))
		}
		ses.Threads = ses.Threads[excess:]
	}
	ses.AddKey(b.Key)
	ses.Tenant, ses.Seen = cmp.Or(t.Tenant, ses.Tenant), t.Seen
	ses.Requests++
	c.put(key, codec.Session(ses))
	return nil
}

func (s *Store) Mark(ctx context.Context, at session.Place, traces session.Traces) error {
	if traces.Len() == 0 && traces.Request == 0 {
		return ctx.Err()
	}
	return s.change(ctx, false, func(c *change) error {
		if c.get(threads.key(string(at.Thread))) == nil {
			return session.ErrNotFound
		}
		block := answered(at.Thread, at.Pos)
		c.put(block, slices.Concat(c.get(block), codec.Answer(session.Answer{Pos: at.Pos, Request: traces.Request})))
		mark(c, traces, at)
		forgetTraces(c, at.Thread)
		return nil
	})
}

// Answers implements session.Store.
func (s *Store) Answers(ctx context.Context, id session.ThreadID) ([]session.Answer, error) {
	return query(ctx, s, func(r *reader) (all []session.Answer, err error) {
		for _, key := range slices.Sorted(slices.Values(r.keysWithPrefix(answeredPrefix(id)))) {
			all = append(all, codec.ParseAnswers(r.get(key))...)
		}
		return all, nil
	})
}

// mark makes traces point to a place, and notes in the thread which ones.
func mark(c *change, t session.Traces, at session.Place) {
	place := codec.Place(at)
	for _, h := range slices.Concat(t.Lasting, t.Recent) {
		c.put(traces.hash(h), place)
	}
	for _, h := range t.First {
		if key := traces.hash(h); c.get(key) == nil {
			c.put(key, place)
		}
	}
	if len(t.Lasting) > 0 {
		all := codec.JoinShort(t.Lasting)
		name := sha256.Sum256(all)
		c.put(marked.prefix(string(at.Thread))+"h"+string(name[:8]), all)
	}
	if len(t.Recent)+len(t.First) > 0 {
		key := marked.prefix(string(at.Thread))
		c.put(key, withRecent(c.get(key), codec.JoinShort(slices.Concat(t.Recent, t.First))))
	}
}

// withRecent appends Short hashes to a list of them. The result has each only once, where it was added last.
func withRecent(list, more []byte) []byte {
	all := make([]byte, 0, len(list)+len(more))
	for h := range slices.Chunk(list, codec.ShortLen) {
		if !hasShort(more, h) {
			all = append(all, h...)
		}
	}
	for i := 0; i < len(more); i += codec.ShortLen {
		if h := more[i:][:codec.ShortLen]; !hasShort(more[i+codec.ShortLen:], h) {
			all = append(all, h...)
		}
	}
	return all
}

// hasShort reports whether a list of short hashes has one.
func hasShort(list, short []byte) bool {
	for h := range slices.Chunk(list, codec.ShortLen) {
		if bytes.Equal(h, short) {
			return true
		}
	}
	return false
}

// forgetTraces deletes the recent traces of a thread that are too many.
func forgetTraces(c *change, id session.ThreadID) {
	key := marked.prefix(string(id))
	list := c.get(key)
	excess := len(list) - session.MaxRecent*codec.ShortLen
	if excess <= 0 {
		return
	}
	for h := range slices.Chunk(list[:excess], codec.ShortLen) {
		c.deleteIndex(traces.key(string(h)), id)
	}
	c.put(key, slices.Clone(list[excess:]))
}
