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

// damage is what panics and faults in bbolt have revealed about the open file. An unreadable page fails the calls that need it. After a
// commit has panicked there are no more commits, because the state of bbolt is unknown.
type damage struct {
	found     atomic.Pointer[error] // the first damage
	noCommits atomic.Bool           // a commit panicked

	mu    sync.Mutex    // held while bbolt uses its locks to begin or end a transaction that only reads
	stuck chan struct{} // closed, under mu, when bbolt will never release a lock
}

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

// recovered calls f, which uses the file. A panic in bbolt, or a fault on a page, is damage: the error wraps session.ErrDamaged. Any other
// panic is a defect of the program, for which no file is to blame.
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

// guard calls f, which uses the file. Damage, or a corrupt record, is noted for Ping and for the next start.
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

// begin begins a transaction.
func (s *Store) begin(writable bool) (tx *bolt.Tx, err error) {
	err = s.guard(func() (err error) {
		tx, err = s.db.Begin(writable)
		return err
	})
	if err != nil && !errors.Is(err, session.ErrDamaged) {
		err = fmt.Errorf("%w: %w", session.ErrUnavailable, err)
	}
	return tx, err
}

// locked calls f, in which bbolt takes locks, and notes if it panics while it has them.
func (s *Store) locked(f func() error) error {
	d := &s.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isStuck() {
		return d.err()
	}
	err := f()
	if errors.Is(err, session.ErrDamaged) {
		close(d.stuck)
	}
	return err
}

// view calls read in a read-only transaction.
func (s *Store) view(read func(*bolt.Tx) error) error {
	var tx *bolt.Tx
	err := s.locked(func() (err error) {
		tx, err = s.begin(false)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = s.locked(tx.Rollback) }() // ends a read; cannot fail
	return s.guard(func() error { return read(tx) })
}

// update calls write in a transaction and commits it. Only the writer calls it.
func (s *Store) update(write func(*bolt.Tx) error) error {
	if s.damage.noCommits.Load() || s.damage.isStuck() {
		return s.damage.err()
	}
	tx, err := s.begin(true)
	if err != nil {
		return s.locked(func() error { return err })
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
	// A failed commit has been rolled back already. The error of another rollback says nothing, but damage does.
	_ = s.locked(func() error { return s.guard(tx.Rollback) })
	return err
}
