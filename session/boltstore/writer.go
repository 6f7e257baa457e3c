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

// linger is how long a write may wait for others. Every commit costs about 0.5 ms of CPU, however small, and in a large one the writes of
// several steps of a thread replace each other. If a crash loses writes, the next request of the conversation repairs them. It cannot
// restore which thread the conversation was in, nor messages that the client does not send again because upstream stores them. Therefore
// such writes wait only for beginLinger, unless another write was committed early just before.
const (
	linger      = 200 * time.Millisecond
	beginLinger = 10 * time.Millisecond
)

// commitIn schedules a commit after a delay, unless one is scheduled earlier.
func (s *Store) commitIn(delay time.Duration) {
	due := time.Now().Add(delay)
	if s.pending.due.IsZero() || due.Before(s.pending.due) {
		s.pending.due = due
		s.timer.Reset(delay)
	}
}

// write commits whenever a commit is due, until the store is closed.
func (s *Store) write() {
	defer close(s.written)
	for {
		select {
		case <-s.timer.C:
			s.commit()
		case f := <-s.between:
			f()
		case <-s.quit:
			s.commit()
			return
		}
	}
}

func (s *Store) commit() {
	writes, waiting := s.takeQueue()
	var err error
	if len(writes) > 0 {
		err = s.apply(writes)
	}
	waiting = append(waiting, s.finishCommit(err)...)
	for _, w := range waiting {
		w <- err
	}
}

// takeQueue moves the queue to the running commit.
func (s *Store) takeQueue() (writes map[string][]byte, waiting []chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.pending
	waiting = p.waiting
	p.committing, p.committingBytes = p.queued, p.queuedBytes
	p.queued, p.queuedBytes = map[string][]byte{}, 0
	p.waiting, p.due = nil, time.Time{}
	return p.committing, waiting
}

// apply commits writes. It writes in the order of the keys, which touches each page of a tree once.
func (s *Store) apply(writes map[string][]byte) error {
	var size int64
	err := s.update(func(tx *bolt.Tx) error {
		size = savedSize(tx)
		for _, key := range slices.Sorted(maps.Keys(writes)) {
			grown, err := put(tx, key, writes[key])
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
	s.note(writes)
	if s.exceeds(size) {
		select {
		case s.full <- struct{}{}:
		default: // the sweeper has been woken already
		}
	}
	return nil
}

// put writes or deletes a record and returns by how much the counted size has grown. Looking up the old value costs little,
// because its page is needed anyway.
func put(tx *bolt.Tx, key string, value []byte) (grown int64, err error) {
	kind, name := split(key)
	b := tx.Bucket(kind)
	if bucket(key[0]) == events {
		b.FillPercent = fullPages
	}
	if bucket(key[0]).counted() {
		grown = cost(len(name), value) - cost(len(name), b.Get(name))
	}
	if value == nil {
		return grown, b.Delete(name)
	}
	return grown, b.Put(name, value)
}

// finishCommit ends the running commit. If it failed, the writes queued since it began are lost too, because they build on it. In that case
// finishCommit returns the callers that wait for the queue. Callers that do not wait are not told; their next requests repair the loss.
func (s *Store) finishCommit(err error) (lost []chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.pending
	p.committing, p.committingBytes, p.failed = nil, 0, err
	if err != nil {
		lost, p.waiting = p.waiting, nil
		p.queued, p.queuedBytes = map[string][]byte{}, 0
	}
	if !p.closed {
		close(p.room)
		p.room = make(chan struct{})
	}
	return lost
}

const (
	recordCost = 16 // bytes that a page needs for each record besides its key and value
	pagesCost  = 2  // bytes of pages per byte of records: pages are about half full (1.9 to 2.0 once evictions are common)
)

// fullPages is how full the pages of logs become. A thread's entries are added in order, so they need no room between them.
const fullPages = 0.95

// cost returns the size of a record whose name has the given length, 0 if its value is nil.
func cost(name int, value []byte) int64 {
	if value == nil {
		return 0
	}
	return pagesCost * int64(recordCost+name+len(value))
}

// counted reports whether records in the bucket count towards the size. There are few of the others.
func (b bucket) counted() bool { return b != meta && b != outbox && b != totals }

// sizesName is the name in meta of the size of all records.
const sizesName = "sizes"

// saveSize records the size of all records, in the transaction that changes it.
func saveSize(tx *bolt.Tx, size int64) error {
	b := binary.BigEndian.AppendUint64(nil, uint64(size)) //nolint:gosec // the same 64 bits
	return tx.Bucket(meta.name()).Put([]byte(sizesName), b)
}

// savedSize returns the recorded size, 0 in a new file.
func savedSize(tx *bolt.Tx) int64 {
	b := tx.Bucket(meta.name()).Get([]byte(sizesName))
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // the same 64 bits
}

// Size returns the size of all records in bytes, as MaxSize counts it, and the length of the file. Neither includes
// the queue.
func (s *Store) Size() (records, file int64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		records, file = savedSize(tx), tx.Size()
		return nil
	})
	return records, file, err
}

// exceeds reports whether size is above the cap.
func (s *Store) exceeds(size int64) bool { return s.options.MaxSize > 0 && size > s.options.MaxSize }
