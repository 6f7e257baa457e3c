package boltstore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// linger is how long a write may wait for others: a commit costs about 0.5 ms of CPU, however small it is, and in a large
// one the writes of a thread's steps fall together. What a crash takes along meanwhile, the next request of its conversation
// brings again, but not which thread it was in; so a thread's beginning does not linger, unless one has just begun.
const (
	linger    = 200 * time.Millisecond
	beginning = 10 * time.Millisecond
)

// commitIn has the writer commit after a delay, or sooner if something has asked for that.
func (s *Store) commitIn(delay time.Duration) {
	if due := time.Now().Add(delay); s.pending.due.IsZero() || due.Before(s.pending.due) {
		s.pending.due = due
		s.timer.Reset(delay)
	}
}

// write commits whenever that is due, until the store is shut.
func (s *Store) write() {
	defer close(s.done)
	for {
		select {
		case <-s.timer.C:
			s.commit()
		case <-s.quit:
			s.commit()
			return
		}
	}
}

func (s *Store) commit() {
	writes, waiting := s.take()
	var err error
	if len(writes) > 0 {
		err = s.apply(writes)
	}
	for _, w := range append(waiting, s.settle(err)...) {
		w <- err
	}
}

func (s *Store) take() (writes map[string][]byte, waiting []chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.pending
	waiting = p.waiting
	p.committing, p.queued = p.queued, map[string][]byte{}
	p.busy, p.bytes, p.waiting, p.due = p.bytes, 0, nil, time.Time{}
	return p.committing, waiting
}

// apply writes in the order of the keys, which touches each page of a tree once.
func (s *Store) apply(writes map[string][]byte) error {
	var size int64
	err := s.update(func(tx *bolt.Tx) (err error) {
		if size, err = savedSize(tx); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(writes)) {
			grown, err := store(tx, key, writes[key])
			if err != nil {
				return err
			}
			size += grown
		}
		return saveSize(tx, size)
	})
	if err != nil {
		return fmt.Errorf("%w: commit: %w", session.ErrUnavailable, err)
	}
	if s.full(size) {
		select {
		case s.crowded <- struct{}{}:
		default: // the sweeper knows
		}
	}
	return nil
}

// store gives by how much what counts has grown. That what was there is looked up costs little: its page is needed anyway.
func store(tx *bolt.Tx, key string, value []byte) (grown int64, err error) {
	kind, name := split(key)
	b := tx.Bucket(kind)
	if bucket(key[0]).counts() {
		grown = cost(len(name), value) - cost(len(name), b.Get(name))
	}
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
		lost, p.waiting = p.waiting, nil
		p.queued, p.bytes = map[string][]byte{}, 0
	}
	if !p.closed {
		close(p.room)
		p.room = make(chan struct{})
	}
	return lost
}

const (
	recordCost = 16 // bytes that a page spends on each record on top of its key and value
	pagesCost  = 2  // the pages' bytes for each of the records': they are half full (1.9 to 2.0 once evictions are usual)
)

// cost is what a record takes whose name is so long, nothing if its value is nil.
func cost(name int, value []byte) int64 {
	if value == nil {
		return 0
	}
	return pagesCost * int64(recordCost+name+len(value))
}

// counts reports whether what records of this kind take is counted: of the others there are few.
func (b bucket) counts() bool { return b != meta && b != outbox }

// saveSize keeps in the file how many bytes the records take in it, in the transaction that changes them. An earlier version kept two
// numbers, of which the sum was the size.
func saveSize(tx *bolt.Tx, size int64) error {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b, uint64(size)) //nolint:gosec // the same 64 bits
	return tx.Bucket(meta.name()).Put([]byte("sizes"), b)
}

// savedSize counts anew if the file was written before the size was kept.
func savedSize(tx *bolt.Tx) (int64, error) {
	b := tx.Bucket(meta.name()).Get([]byte("sizes"))
	if len(b) != 16 {
		return measured(tx)
	}
	return int64(binary.BigEndian.Uint64(b) + binary.BigEndian.Uint64(b[8:])), nil //nolint:gosec // the same 64 bits
}

// measured reads the whole file.
func measured(tx *bolt.Tx) (size int64, err error) {
	for _, b := range buckets {
		if !b.counts() {
			continue
		}
		err := tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
			size += cost(len(name), value)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// Size is how many bytes the records take, as MaxSize counts them, and how long the file is. What is queued comes on top.
func (s *Store) Size() (records, file int64, err error) {
	err = s.view(func(tx *bolt.Tx) (err error) {
		records, err = savedSize(tx)
		file = tx.Size()
		return err
	})
	return records, file, err
}

// full reports whether size is more than the store may hold.
func (s *Store) full(size int64) bool { return s.options.MaxSize > 0 && size > s.options.MaxSize }
