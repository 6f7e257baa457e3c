package boltstore

import (
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// group is what one commit writes.
type group struct {
	writes  map[string][]byte
	waiting []chan error
}

// write commits, one group after the other, until the store is shut.
func (s *Store) write() {
	defer close(s.done)
	var began time.Time // when the last beginning was not to linger
	for range s.wake {
		soon := s.soon
		if time.Since(began) < linger {
			soon = nil
		}
		if s.gather(soon) {
			began = time.Now()
		}
		s.commit()
	}
	s.commit()
}

// linger is how long a write may wait for others: a commit costs about 0.5 ms of CPU, however small it is, and in a large
// one the writes of a thread's steps fall together. What a crash takes along meanwhile, the next request of its conversation
// brings again, but not which thread it was in; so a thread's beginning does not linger, unless one has just begun.
const (
	linger    = 200 * time.Millisecond
	beginning = 10 * time.Millisecond
)

// gather lets more writes come, unless a caller waits for the commit or the queue fills. It does so for a short time only
// when soon tells that a thread begins, and reports that.
func (s *Store) gather(soon <-chan struct{}) (began bool) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return began
		case <-s.hurry:
			return began
		case <-soon:
			began, soon = true, nil
			timer.Reset(beginning)
		}
	}
}

func (s *Store) commit() {
	g := s.take()
	var err error
	if len(g.writes) > 0 {
		var size sizes
		if size, err = s.apply(g.writes); err == nil && s.full(size) {
			signal(s.crowded)
		}
	}
	for _, w := range append(g.waiting, s.settle(err)...) {
		w <- err
	}
}

func (s *Store) take() group {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.pending
	g := group{writes: p.queued, waiting: p.waiting}
	p.committing, p.queued = p.queued, map[string][]byte{}
	p.busy, p.bytes, p.waiting = p.bytes, 0, nil
	return g
}

// apply writes in the order of the keys, which touches each page of a tree once. It gives what is stored then.
func (s *Store) apply(writes map[string][]byte) (size sizes, err error) {
	keys := make([]string, 0, len(writes))
	for k := range writes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	err = s.update(func(tx *bolt.Tx) error {
		if size, err = savedSizes(tx); err != nil {
			return err
		}
		for _, k := range keys {
			grown, err := store(tx, k, writes[k])
			if err != nil {
				return err
			}
			size.add(bucket(k[0]), grown)
		}
		return size.save(tx)
	})
	if err != nil {
		return size, fmt.Errorf("%w: commit: %w", session.ErrUnavailable, err)
	}
	return size, nil
}

// store gives by how much the file has grown. That what was there is looked up costs little: its page is needed anyway.
func store(tx *bolt.Tx, key string, value []byte) (grown int64, err error) {
	kind, name := split(key)
	b := tx.Bucket(kind)
	grown = cost(len(name), value) - cost(len(name), b.Get(name))
	if value == nil {
		return grown, b.Delete(name)
	}
	return grown, b.Put(name, value)
}

// settle ends a commit. Whatever was queued since was built on what the commit should have written, so a failed one takes
// it along: those who wait for it are returned, and the others were told nothing but repair it with their next request.
func (s *Store) settle(err error) (lost []chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.pending
	p.committing, p.busy, p.failed = nil, 0, err
	if err != nil {
		p.losses++
		lost, p.waiting = p.waiting, nil
		p.queued, p.bytes = map[string][]byte{}, 0
	}
	if !p.closed {
		close(p.room)
		p.room = make(chan struct{})
	}
	return lost
}
