package boltstore

import (
	"errors"
	"fmt"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// damage records the damage to the file that panics and faults in bbolt have revealed. An unreadable page fails the calls
// that need it. After a commit has panicked there are no more commits, because the state of bbolt is unknown.
type damage struct {
	found     atomic.Pointer[error] // the first damage
	committed atomic.Bool           // a commit panicked, so no other may begin
	stuck     atomic.Bool           // bbolt will never release a lock, so no transaction may begin
}

// err returns the first damage that was found, nil if there is none.
func (d *damage) err() error {
	if err := d.found.Load(); err != nil {
		return *err
	}
	return nil
}

// guard calls f, which uses the file. A panic or a corrupt record means that the file is damaged.
func (s *Store) guard(f func() error) error {
	err := session.Recover(f)
	_, panicked := errors.AsType[*session.PanicError](err)
	switch {
	case panicked:
		err = fmt.Errorf("%w: %w: %s", session.ErrDamaged, err, s.advice())
	case errors.Is(err, codec.ErrCorrupt):
		err = fmt.Errorf("%w: %w: %w: %s", session.ErrUnavailable, session.ErrDamaged, err, s.advice())
	default:
		return err
	}
	s.damage.found.CompareAndSwap(nil, &err)
	return err
}

func (s *Store) advice() string {
	return fmt.Sprintf("stop the process and run 'dewpoint check-store %s'", s.options.Path)
}

// begin begins a transaction.
func (s *Store) begin(writable bool) (tx *bolt.Tx, err error) {
	if s.damage.stuck.Load() || writable && s.damage.committed.Load() {
		return nil, s.damage.err()
	}
	err = s.guard(func() (err error) {
		tx, err = s.db.Begin(writable)
		return err
	})
	switch {
	case errors.Is(err, session.ErrDamaged):
		s.damage.stuck.Store(true)
	case err != nil:
		err = fmt.Errorf("%w: %w", session.ErrUnavailable, err)
	}
	return tx, err
}

// view calls read in a read-only transaction.
func (s *Store) view(read func(*bolt.Tx) error) error {
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends a read; cannot fail
	return s.guard(func() error { return read(tx) })
}

// update calls write in a transaction and commits it.
func (s *Store) update(write func(*bolt.Tx) error) error {
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
		s.damage.committed.Store(true)
	}
	// A failed commit has been rolled back already. The error of another rollback says nothing, but a panic does.
	if _, panicked := errors.AsType[*session.PanicError](s.guard(tx.Rollback)); panicked {
		s.damage.stuck.Store(true)
	}
	return err
}
