package boltstore

import (
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

// Append implements session.Store. It returns when the batch is queued, unless the last commit failed or the queue is
// full: then it waits, at most until ctx is done.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	if err := codec.CheckIDs(b.Thread.ID, b.Thread.Session); err != nil {
		return err
	}
	encoded := make([][]byte, len(b.Events)) // before the lock is taken
	for i, e := range b.Events {
		encoded[i] = s.content.Event(b.Thread.ID, e)
	}
	return s.change(ctx, false, func(c *change) error { return appendBatch(c, b, encoded) })
}

func appendBatch(c *change, b session.Batch, encoded [][]byte) error {
	rec, err := extended(c, b)
	if err != nil {
		return err
	}
	if err := join(c, b); err != nil {
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
	mark(c, b.Traces, codec.Last(b))
	return nil
}

// extended is the thread's record as the batch wants it, on top of what is stored; ErrStale if that does not fit.
func extended(c *change, b session.Batch) (record, error) {
	rec := record{written: time.Now(), thread: b.Thread}
	old, err := c.thread(b.Thread.ID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		rec.thread.Seq, rec.thread.Requested, rec.list = 0, 0, codec.List(b.Thread.Listed())
		return rec, begin(c, b, rec)
	case err != nil:
		return rec, err
	case old.thread.Len != b.At:
		return rec, fmt.Errorf("%w: the thread is at %d, not %d", session.ErrStale, old.thread.Len, b.At)
	case !old.thread.Created.Equal(b.Thread.Created):
		return rec, fmt.Errorf("%w: the thread was deleted and began anew", session.ErrStale)
	}
	rec.thread.Seq, rec.list, rec.thread.Requested = old.thread.Seq, old.list, old.thread.Requested
	return rec, nil
}

// begin makes sure that a thread may begin. The records of those that a fork needs are written again with it: so the sweeper
// sees that they are needed. If one is gone meanwhile, or is another one, the fork would be half a thread: ErrStale.
func begin(c *change, b session.Batch, rec record) error {
	c.begins = true
	switch {
	case !codec.Begins(b):
		return fmt.Errorf("%w: the thread is unknown, not at %d", session.ErrStale, b.At)
	case b.At == 0:
		return nil
	}
	needs, err := rec.needs()
	if err != nil {
		return fmt.Errorf("thread record: %w", err)
	}
	for _, id := range needs {
		lender, err := c.thread(id)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return fmt.Errorf("%w: the thread %s, which it was to share, is gone", session.ErrStale, id)
		case err != nil:
			return err
		case id == b.Thread.Parent && !b.ParentCreated.IsZero() && !lender.thread.Created.Equal(b.ParentCreated):
			return fmt.Errorf("%w: the thread %s, which it was to share, began anew", session.ErrStale, id)
		}
		lender.written = rec.written
		c.put(threads.key(string(id)), lender.encode())
	}
	return nil
}

// join puts the batch's thread into its session's record, if it has one. That lists the newest threads; the names of the others are kept
// apart: they are deleted with the session.
func join(c *change, b session.Batch) error {
	t := b.Thread
	if t.Session == "" {
		return nil
	}
	key, ses := sessions.key(string(t.Session)), session.Session{ID: t.Session, Created: t.Created}
	if stored := c.get(key); stored != nil {
		var err error
		if ses, err = codec.ParseSession(stored); err != nil {
			return fmt.Errorf("session record: %w", err)
		}
	}
	if !slices.Contains(ses.Threads, t.ID) {
		c.delete(unlisted.pair(ses.ID, t.ID))
		ses.Threads = append(ses.Threads, t.ID)
		most := max(0, len(ses.Threads)-session.MaxThreads)
		for _, old := range ses.Threads[:most] {
			c.put(unlisted.pair(ses.ID, old), []byte(old))
		}
		ses.Threads = ses.Threads[most:]
	}
	ses.Tenant, ses.Key, ses.Seen = cmp.Or(t.Tenant, ses.Tenant), cmp.Or(b.Key, ses.Key), t.Seen
	c.put(key, codec.Session(ses))
	return nil
}

func (s *Store) Mark(ctx context.Context, hashes []session.Hash, at session.Place) error {
	if len(hashes) == 0 {
		return ctx.Err()
	}
	return s.change(ctx, false, func(c *change) error {
		if c.get(threads.key(string(at.Thread))) == nil {
			return session.ErrNotFound
		}
		mark(c, hashes, at)
		return nil
	})
}

func mark(c *change, hashes []session.Hash, at session.Place) {
	if len(hashes) == 0 {
		return
	}
	place := codec.Place(at)
	all := make([]byte, 0, len(hashes)*len(session.Hash{}))
	for _, h := range hashes {
		c.put(traces.hash(h), place)
		all = append(all, h[:]...)
	}
	name := sha256.Sum256(all)
	c.put(marked.of(string(at.Thread))+string(name[:]), all)
}
