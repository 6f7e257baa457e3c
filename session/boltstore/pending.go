package boltstore

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// pending is what is not, or not yet, on disk. A nil value is a deletion.
type pending struct {
	holds      map[string]holds  // of budgets, by account
	queued     map[string][]byte // for the next commit
	committing map[string][]byte // in the commit that is under way
	waiting    []chan error      // each gets the outcome of the next commit
	bytes      int               // in queued
	busy       int               // in committing
	room       chan struct{}     // closed when there may be room again
	due        time.Time         // when the next commit begins, zero if nothing asks for one
	hurried    time.Time         // when a commit last did not linger for a thread's beginning
	failed     error             // of the last commit
	closed     bool
}

func (p *pending) put(key string, value []byte) {
	p.queued[key] = value
	p.bytes += len(key) + len(value)
}

// reader reads records, from the queue or from the disk.
type reader struct {
	tx      *bolt.Tx
	pending *pending
	writes  map[string][]byte // of a change
}

// queues are what has been written and is not on disk, the newest first.
func (r *reader) queues() [3]map[string][]byte {
	return [...]map[string][]byte{r.writes, r.pending.queued, r.pending.committing}
}

// get gives a value that must not be kept after the step, nil if there is none.
func (r *reader) get(key string) []byte {
	for _, queue := range r.queues() {
		if value, found := queue[key]; found {
			return value
		}
	}
	bucket, name := split(key)
	return r.tx.Bucket(bucket).Get(name)
}

// read does one step that sees the store as it is at one moment.
func (s *Store) read(ctx context.Context, step func(*reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending.closed {
		return errClosed
	}
	return s.view(func(tx *bolt.Tx) error { return step(&reader{tx: tx, pending: &s.pending}) })
}

// change is the inside of one step that nothing else can come between. What it writes is queued when it has succeeded.
type change struct {
	reader
	begins bool // begins a thread
}

// put takes over value.
func (c *change) put(key string, value []byte) { c.writes[key] = value }

// delete gives what the record took that was there, 0 if there was none.
func (c *change) delete(key string) (freed int64) {
	value := c.get(key)
	if value != nil {
		c.writes[key] = nil
	}
	return cost(len(key)-1, value)
}

// change queues what step writes, all of it in one commit, and waits for that commit if it is to be durable. After a
// failed commit every change waits, so that its caller knows, until one succeeds.
func (s *Store) change(ctx context.Context, durable bool, step func(*change) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	outcome, err := s.enqueue(durable, step)
	if err != nil || outcome == nil {
		return err
	}
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush waits until all that is queued is on disk.
func (s *Store) flush(ctx context.Context) error {
	return s.change(ctx, true, func(*change) error { return nil })
}

// enter takes the lock once the queue has room. It waits no longer than ctx.
func (s *Store) enter(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		if s.pending.closed {
			s.mu.Unlock()
			return errClosed
		}
		if s.pending.bytes+s.pending.busy < s.most {
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

// enqueue unlocks what enter locked.
func (s *Store) enqueue(durable bool, step func(*change) error) (outcome chan error, err error) {
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
		p.put(key, value)
	}
	if durable || p.failed != nil {
		outcome = make(chan error, 1)
		p.waiting = append(p.waiting, outcome)
	}
	switch {
	case outcome != nil || p.bytes > s.most/2:
		s.commitIn(0)
	case c.begins && time.Since(p.hurried) >= linger:
		p.hurried = time.Now()
		s.commitIn(beginning)
	default:
		s.commitIn(linger)
	}
	return outcome, nil
}
