package boltstore

import (
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
	rec, lenders, err := extended(c, b)
	if err != nil {
		return err
	}
	ses, err := joined(c, b)
	if err != nil {
		return err
	}
	for i, e := range encoded {
		c.put(events.entry(b.Thread.ID, rec.thread.Seq+1+uint64(i)), e)
	}
	rec.thread.Seq += uint64(len(encoded))
	c.put(threads.key(string(b.Thread.ID)), rec.encode())
	for _, l := range lenders {
		l.written = rec.written
		c.put(threads.key(string(l.thread.ID)), l.encode())
	}
	for _, p := range b.Places {
		c.put(places.hash(p.Hash), codec.Place(p.Place))
	}
	mark(c, b.Traces, codec.Last(b))
	if ses != nil {
		c.put(sessions.key(string(ses.ID)), codec.Session(*ses))
	}
	return nil
}

// extended is the thread's record as the batch wants it, on top of what is stored; ErrStale if that does not fit. With
// it come the records of those that a beginning fork borrows from.
func extended(c *change, b session.Batch) (rec record, lenders []record, err error) {
	rec = record{written: time.Now(), thread: b.Thread}
	old, err := c.thread(b.Thread.ID)
	if errors.Is(err, session.ErrNotFound) {
		c.begins = true
		if !codec.Begins(b) {
			return rec, nil, fmt.Errorf("%w: the thread is unknown, not at %d", session.ErrStale, b.At)
		}
		rec.thread.Seq, rec.thread.Requested, rec.list = 0, 0, codec.List(b.Thread.Listed())
		if err = nil; b.At > 0 {
			lenders, err = lendersOf(c, rec)
		}
		if err == nil && anew(b, lenders) {
			err = fmt.Errorf("%w: the thread %s, which it was to share, began anew", session.ErrStale, b.Thread.Parent)
		}
		return rec, lenders, err
	}
	if err != nil {
		return rec, nil, err
	}
	if old.thread.Len != b.At {
		return rec, nil, fmt.Errorf("%w: the thread is at %d, not %d", session.ErrStale, old.thread.Len, b.At)
	}
	if !old.thread.Created.Equal(b.Thread.Created) {
		return rec, nil, fmt.Errorf("%w: the thread was deleted and began anew", session.ErrStale)
	}
	rec.thread.Seq, rec.list, rec.thread.Requested = old.thread.Seq, old.list, old.thread.Requested
	return rec, nil, nil
}

// lendersOf reads the records of the threads that a beginning fork needs. They are written again with it: so the sweeper
// sees that they are needed. If one is gone meanwhile, the fork would be half a thread: ErrStale.
func lendersOf(c *change, fork record) ([]record, error) {
	needs, err := fork.needs()
	if err != nil {
		return nil, fmt.Errorf("thread record: %w", err)
	}
	lenders := make([]record, len(needs))
	for i, id := range needs {
		lenders[i], err = c.thread(id)
		if errors.Is(err, session.ErrNotFound) {
			return nil, fmt.Errorf("%w: the thread %s, which it was to share, is gone", session.ErrStale, id)
		}
		if err != nil {
			return nil, err
		}
	}
	return lenders, nil
}

// anew reports whether the parent of a beginning fork is another one than the fork was found to share.
func anew(b session.Batch, lenders []record) bool {
	return slices.ContainsFunc(lenders, func(l record) bool {
		return l.thread.ID == b.Thread.Parent && !b.ParentCreated.IsZero() && !l.thread.Created.Equal(b.ParentCreated)
	})
}

// joined is the session's record with the batch's thread in it, nil if the thread has no session.
func joined(c *change, b session.Batch) (*session.Session, error) {
	t := b.Thread
	if t.Session == "" {
		return nil, nil
	}
	ses := session.Session{ID: t.Session, Created: t.Created}
	if stored := c.get(sessions.key(string(t.Session))); stored != nil {
		var err error
		if ses, err = codec.ParseSession(stored); err != nil {
			return nil, fmt.Errorf("session record: %w", err)
		}
	}
	if !slices.Contains(ses.Threads, t.ID) {
		enlist(c, &ses, t.ID)
	}
	if t.Tenant != "" {
		ses.Tenant = t.Tenant
	}
	if b.Key != "" {
		ses.Key = b.Key
	}
	ses.Seen = t.Seen
	return &ses, nil
}

// enlist adds a thread to the session's record, which lists the newest, and keeps the names of the others: they are
// deleted with the session.
func enlist(c *change, ses *session.Session, id session.ThreadID) {
	ses.Threads = append(ses.Threads, id)
	most := max(0, len(ses.Threads)-session.MaxThreads)
	for _, old := range ses.Threads[:most] {
		c.put(unlisted.pair(ses.ID, old), []byte(old))
	}
	ses.Threads = ses.Threads[most:]
	c.delete(unlisted.pair(ses.ID, id))
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
