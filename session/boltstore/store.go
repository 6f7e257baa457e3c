// Package boltstore keeps sessions in one local file, with no server to install.
//
// Writes are queued in memory, where reads see them at once, and one goroutine commits whatever has gathered as a single
// transaction. So an append costs no disk access, a burst costs one fsync, and a crash loses at most the last writes,
// each of them whole. The file belongs to one process at a time. It does not shrink, but reuses its space.
package boltstore

import (
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
	db      *bolt.DB
	options Options
	most    int // bytes that may be pending
	content codec.Content
	damage  damage

	mu      sync.RWMutex // guards pending
	pending pending
	timer   *time.Timer   // tells the writer that a commit is due; set under mu
	crowded chan struct{} // tells the sweeper that the cap is passed
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when the writer has ended

	locking sync.Mutex // guards locks
	locks   map[session.ThreadID]*lock

	closing sync.Once
	stop    func() // ends the sweeper and waits for it
}

var _ session.Backend = (*Store)(nil)

var errClosed = fmt.Errorf("%w: the store is closed", session.ErrUnavailable)

// Ping reports whether writes reach the disk and the file is whole, as far as it was used: the last commit's error, or
// ErrDamaged, wrapped in ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending.closed {
		return errClosed
	}
	if s.pending.failed != nil {
		return s.pending.failed
	}
	return s.damage.err()
}

// Close commits what is queued and closes the file. Later calls give ErrUnavailable; closing again is no error.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.stop()
		s.shut()
		<-s.done
		err = errors.Join(s.pending.failed, s.closeFile())
	})
	return err
}

// closeFile leaves the file open if bbolt holds a lock for good, which closing it would wait for.
func (s *Store) closeFile() error {
	if s.damage.stuck.Load() {
		return s.damage.err()
	}
	return errors.Join(s.damage.err(), session.Recover(s.db.Close))
}

func (s *Store) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.closed = true
	close(s.quit)
	close(s.pending.room)
}
