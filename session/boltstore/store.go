// Package boltstore stores sessions in one local file. It needs no server.
//
// Writes are queued in memory, where reads see them at once, and one goroutine commits the whole queue as a single transaction. Therefore
// an append does not wait for the disk, a burst of writes costs one fsync, and a crash loses at most the newest writes, and never part of
// a write. Only one process at a time can open the file. Free space in it is reused; after a deletion the file is compacted.
package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Store is a session.Store in one file. All methods may be called concurrently.
type Store struct {
	lock      *lockFile // held until Close
	db        *bolt.DB  // replaced by a compaction, under exchange
	recovery  *recovery
	options   Options
	maxQueued int // bytes
	content   codec.Content
	damage    damage

	mu      sync.RWMutex // guards pending
	pending pending
	timer   *time.Timer   // wakes the writer when a commit is due; reset under mu
	full    chan struct{} // wakes the sweeper when the cap is exceeded
	quit    chan struct{} // closed by Close
	written chan struct{} // closed by the writer after the last commit

	lockMu sync.Mutex                      // guards locks
	locks  map[session.ThreadID]*time.Time // when each ends

	exchange sync.RWMutex        // held by each transaction, and locked while a compaction replaces the file
	compacts chan chan error     // asks for a compaction; each receives its result
	between  chan func()         // runs in the writer's goroutine, between two commits
	noted    map[string]struct{} // keys written while the file is copied, nil at other times; the writer's

	stopCompactor func() // stops the compactor and waits for it

	closing     sync.Once
	stopSweeper func() // stops the sweeper and waits for it
}

var _ session.Backend = (*Store)(nil)

var errClosed = fmt.Errorf("%w: the store is closed", session.ErrUnavailable)

// Ping returns an error that wraps ErrUnavailable if the store is closed, the last commit failed, or the file was found to
// be damaged.
func (s *Store) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending.closed {
		return errClosed
	}
	return cmp.Or(s.pending.failed, s.damage.err())
}

// Encrypts implements session.Store.
func (s *Store) Encrypts() bool { return s.content.Keys.Seals() }

// Close commits the queue and closes the file. Later calls return ErrUnavailable. Closing again is not an error.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.stopSweeper()
		s.stopCompactor()
		s.mu.Lock()
		s.pending.closed = true
		close(s.quit)
		close(s.pending.room)
		s.mu.Unlock()
		select {
		case <-s.written:
			err = errors.Join(s.pending.failed, s.damage.err())
		case <-s.damage.stuck: // the last commit may wait for ever
			err = s.damage.err()
		}
		if !s.damage.isStuck() {
			err = errors.Join(err, session.Recover(s.db.Close))
		}
		err = errors.Join(err, s.lock.Close())
	})
	return err
}
