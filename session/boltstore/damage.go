package boltstore

import (
	"errors"
	"fmt"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// damage is what panics and faults in bbolt have told of the file. A page that cannot be read costs the calls that need it.
// A commit that panicked is the last: bbolt's own state is not known then.
type damage struct {
	found     atomic.Pointer[error] // the first
	committed atomic.Bool           // a commit was in it: there is no other
	stuck     atomic.Bool           // bbolt holds a lock for good: no transaction may begin any more
}

// err is the first damage that was met, nil if none was.
func (d *damage) err() error {
	if err := d.found.Load(); err != nil {
		return *err
	}
	return nil
}

// guard calls f, which uses the file. A panic, or a record that is none, says that it is damaged.
func (s *Store) guard(f func() error) error {
	err := session.Recover(f)
	switch panicked := (*session.PanicError)(nil); {
	case errors.As(err, &panicked):
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

// view reads.
func (s *Store) view(read func(*bolt.Tx) error) error {
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends a read; cannot fail
	return s.guard(func() error { return read(tx) })
}

// update writes and commits, all or nothing.
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
	// After a commit that failed there is nothing to roll back, which is an error that says nothing.
	if _, panicked := errors.AsType[*session.PanicError](s.guard(tx.Rollback)); panicked {
		s.damage.stuck.Store(true)
	}
	return err
}
