package boltstore

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// pending is the state that is in memory only. In the maps of writes, a nil value is a deletion.
type pending struct {
	holds           map[string]holds  // budgets held, by account
	queued          map[string][]byte // writes for the next commit
	queuedBytes     int
	committing      map[string][]byte // writes in the running commit
	committingBytes int
	waiting         []chan error  // each receives the result of the next commit
	room            chan struct{} // closed when there may be room in the queue again
	due             time.Time     // when the next commit begins, zero if none is scheduled
	hurried         time.Time     // when a thread's beginning was last committed early
	failed          error         // of the last commit
	closed          bool
}

// reader reads records from the queue and the file.
type reader struct {
	tx      *bolt.Tx
	pending *pending
	writes  map[string][]byte // the writes of a change so far, nil for a read
}

// get returns a value, nil if there is none. The value is valid only during the transaction.
func (r *reader) get(key string) []byte {
	newestFirst := [...]map[string][]byte{r.writes, r.pending.queued, r.pending.committing}
	for _, writes := range newestFirst {
		if value, found := writes[key]; found {
			return value
		}
	}
	bucket, name := split(key)
	return r.tx.Bucket(bucket).Get(name)
}

// read calls f with a consistent view of the store.
func (s *Store) read(ctx context.Context, f func(*reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending.closed {
		return errClosed
	}
	return s.view(func(tx *bolt.Tx) error { return f(&reader{tx: tx, pending: &s.pending}) })
}

// change is one atomic step. Its writes are queued if the step succeeds.
type change struct {
	reader
	lasts bool // no later request would repair the loss of this step: it begins a thread, or logs messages of a history that upstream stores
}

// put takes ownership of value.
func (c *change) put(key string, value []byte) { c.writes[key] = value }

// delete deletes a record and returns its size, 0 if it does not exist.
func (c *change) delete(key string) (freed int64) {
	value := c.get(key)
	if value != nil {
		c.writes[key] = nil
	}
	return cost(len(key)-1, value)
}

// change runs step and queues its writes for one commit. If durable is set, it waits for that commit. After a commit has
// failed, every change waits, so that its caller learns the result, until a commit succeeds.
func (s *Store) change(ctx context.Context, durable bool, step func(*change) error) error {
	if err := s.lockWithRoom(ctx); err != nil {
		return err
	}
	result, err := s.enqueue(durable, step)
	if err != nil || result == nil {
		return err
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush waits until everything queued is on disk.
func (s *Store) flush(ctx context.Context) error {
	return s.change(ctx, true, func(*change) error { return nil })
}

// lockWithRoom locks s.mu once the queue has room, or returns an error when ctx is done.
func (s *Store) lockWithRoom(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		if s.pending.closed {
			s.mu.Unlock()
			return errClosed
		}
		if s.pending.queuedBytes+s.pending.committingBytes < s.maxQueued {
			return nil
		}
		room := s.pending.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("%w: the write queue is full: %w", session.ErrUnavailable, ctx.Err())
		}
	}
}

// enqueue runs step, queues its writes and schedules the commit. It returns a channel for the commit's result if the caller
// must wait for it. The caller has locked s.mu, and enqueue unlocks it.
func (s *Store) enqueue(durable bool, step func(*change) error) (result chan error, err error) {
	defer s.mu.Unlock()
	p := &s.pending
	c := change{reader: reader{pending: p, writes: map[string][]byte{}}}
	err = s.view(func(tx *bolt.Tx) error {
		c.tx = tx
		return step(&c)
	})
	if err != nil {
		return nil, err
	}
	for key, value := range c.writes {
		p.queued[key] = value
		p.queuedBytes += len(key) + len(value)
	}
	if durable || p.failed != nil {
		result = make(chan error, 1)
		p.waiting = append(p.waiting, result)
	}
	switch {
	case result != nil || p.queuedBytes > s.maxQueued/2:
		s.commitIn(0)
	case c.lasts && time.Since(p.hurried) >= linger:
		p.hurried = time.Now()
		s.commitIn(beginLinger)
	default:
		s.commitIn(linger)
	}
	return result, nil
}
