package boltstore

import (
	"context"
	"fmt"

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
	failed     error             // of the last commit
	losses     int               // commits that failed
	closed     bool
}

// get looks key up; found with a nil value means deleted.
func (p *pending) get(key string) (value []byte, found bool) {
	if value, found = p.queued[key]; found {
		return value, true
	}
	value, found = p.committing[key]
	return value, found
}

func (p *pending) put(key string, value []byte) {
	p.queued[key] = value
	p.bytes += len(key) + len(value)
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
		if s.pending.bytes+s.pending.busy < s.options.MaxPending {
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

// change is the inside of one step that nothing else can come between. What it writes is queued when it has succeeded.
type change struct {
	tx      *bolt.Tx
	pending *pending
	writes  map[string][]byte
	begins  bool // begins a thread
}

// get gives a value that must not be kept after the step, nil if there is none.
func (c *change) get(key string) []byte {
	if value, found := c.writes[key]; found {
		return value
	}
	if value, found := c.pending.get(key); found {
		return value
	}
	bucket, name := split(key)
	return c.tx.Bucket(bucket).Get(name)
}

// cost is what the record under key takes.
func (c *change) cost(key string) int64 { return cost(len(key)-1, c.get(key)) }

// put takes over value.
func (c *change) put(key string, value []byte) { c.writes[key] = value }

func (c *change) delete(key string) { c.writes[key] = nil }

// deleteAny queues nothing if there is nothing to delete.
func (c *change) deleteAny(key string) {
	if c.get(key) != nil {
		c.delete(key)
	}
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

// enqueue unlocks what enter locked.
func (s *Store) enqueue(durable bool, step func(*change) error) (outcome chan error, err error) {
	defer s.mu.Unlock()
	p := &s.pending
	c := change{pending: p, writes: map[string][]byte{}}
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
	signal(s.wake)
	if outcome != nil || p.bytes > s.options.MaxPending/2 {
		signal(s.hurry)
	} else if c.begins {
		signal(s.soon)
	}
	return outcome, nil
}

// signal sends to a channel that remembers one signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
