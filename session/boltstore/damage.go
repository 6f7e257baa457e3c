package boltstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// damage records what panics and faults in bbolt have shown about the open file. If a page is unreadable, only the calls that need it fail.
// After a commit has panicked, there are no more commits, because the state of bbolt is unknown.
type damage struct {
	found     atomic.Pointer[error] // the first damage
	noCommits atomic.Bool           // a commit panicked

	once  sync.Once
	stuck chan struct{} // closed when bbolt panicked with its locks held: it will never release them
}

// stick records that bbolt will never release its locks, so that no call waits for them.
func (d *damage) stick() { d.once.Do(func() { close(d.stuck) }) }

func (d *damage) isStuck() bool {
	select {
	case <-d.stuck:
		return true
	default:
		return false
	}
}

// err returns the first damage that was found, nil if there is none.
func (d *damage) err() error {
	if err := d.found.Load(); err != nil {
		return *err
	}
	return nil
}

// recovered calls f, which uses the file. If bbolt panics, or a page faults, the file is damaged, and the error wraps session.ErrDamaged.
// Any other panic is a defect of the program and says nothing about the file.
func recovered(f func() error) error {
	err := session.Recover(f)
	p, panicked := errors.AsType[*session.PanicError](err)
	if !panicked {
		return err
	}
	_, fault := p.Value.(interface{ Addr() uintptr })
	if fault || strings.HasPrefix(p.Func, "go.etcd.io/bbolt") {
		return fmt.Errorf("%w: %w", session.ErrDamaged, err)
	}
	return err
}

// guard calls f, which uses the file. It records damage, and corrupt records, for Ping and for the next start.
func (s *Store) guard(f func() error) error {
	err := recovered(f)
	if errors.Is(err, codec.ErrCorrupt) {
		err = fmt.Errorf("%w: %w: %w", session.ErrUnavailable, session.ErrDamaged, err)
	}
	if !errors.Is(err, session.ErrDamaged) {
		return err
	}
	cause := err.Error()
	err = fmt.Errorf("%w: the next start renames %s and begins a new file", err, s.options.Path)
	if s.damage.found.CompareAndSwap(nil, &err) {
		_ = s.recovery.change(func(c *recoveryContent) { c.Damage = cause }) // without it, the next start may find the damage itself
	}
	return err
}

// unlessStuck calls f, which begins or ends a transaction, in a goroutine. It returns when f returns, or when it is known that bbolt will
// never release the locks that f waits for; then the goroutine is leaked. A mutex around f would not do instead: Begin may wait for a
// commit that enlarges the file, and that commit waits for reads to end.
func (s *Store) unlessStuck(f func() error) error {
	if s.damage.isStuck() {
		return s.damage.err()
	}
	done := make(chan error, 1)
	go func() { done <- s.guard(f) }()
	select {
	case err := <-done:
		if errors.Is(err, session.ErrDamaged) {
			s.damage.stick()
		}
		return err
	case <-s.damage.stuck:
		return s.damage.err()
	}
}

// begin begins a transaction.
func (s *Store) begin(writable bool) (*bolt.Tx, error) {
	begun := make(chan *bolt.Tx, 1)
	err := s.unlessStuck(func() error {
		tx, err := s.db.Begin(writable)
		begun <- tx
		return err
	})
	switch {
	case err == nil:
		return <-begun, nil
	case errors.Is(err, session.ErrDamaged):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", session.ErrUnavailable, err)
}

// view calls read in a read-only transaction.
func (s *Store) view(read func(*bolt.Tx) error) error {
	s.exchange.RLock()
	defer s.exchange.RUnlock()
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = s.unlessStuck(tx.Rollback) }() // ends a read; cannot fail
	return s.guard(func() error { return read(tx) })
}

// update calls write in a transaction and commits it. Only the writer calls it.
func (s *Store) update(write func(*bolt.Tx) error) error {
	if s.damage.noCommits.Load() {
		return s.damage.err()
	}
	s.exchange.RLock()
	defer s.exchange.RUnlock()
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	err = s.guard(func() error {
		if err := write(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, session.ErrDamaged) {
		s.damage.noCommits.Store(true)
	}
	_ = s.unlessStuck(tx.Rollback) // a failed commit was rolled back already, so the error says nothing; damage is recorded
	return err
}
