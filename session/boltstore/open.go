package boltstore

import (
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// What the file says of its format. An earlier version wrote the old one.
const (
	format    = "dewpoint session store 2"
	oldFormat = "dewpoint session store 1"
)

// Options configure a store, and are not looked at: package config does. Only Path is required.
//
// MaxSize is what all records may take, counted with the half empty pages that they stand in. The file levels off at up
// to a half more, because it keeps the pages that a commit replaces until the next ones. Whole threads are deleted, down
// to 15/16 of the cap, by a goroutine of their own, which an append or a condensation that passes the cap does not wait
// for. The newest thread is never deleted, nor what a fork shares before the fork itself.
type Options struct {
	Path    string        // of the file, which is created if it does not exist; its directory must
	TTL     time.Duration // after the last write to a thread, then it is deleted; 0 never
	Content bool          // keep payloads; otherwise events are kept without them
	Keys    *seal.Keys    // encrypt payloads and summaries; nil: not
	MaxSize int64         // bytes; above, the threads last written longest ago are deleted; 0 no cap
}

const (
	lockWait   = time.Second
	maxPending = 64 << 20 // bytes queued for writing at which appends wait
)

// Open opens the store, or creates it. A file that another process uses, that is damaged or that is no session store is
// an error, and stays as it is.
func Open(o Options) (*Store, error) {
	db, err := openFile(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open session store %s: %w", o.Path, err)
	}
	s := newStore(db, o)
	go s.write()
	s.startSweeper()
	return s, nil
}

func newStore(db *bolt.DB, o Options) *Store {
	return &Store{
		db:      db,
		options: o,
		most:    maxPending,
		content: codec.Content{Keep: o.Content, Keys: o.Keys},
		pending: pending{queued: map[string][]byte{}, room: make(chan struct{}), holds: map[string]holds{}},
		timer:   time.NewTimer(linger),
		crowded: make(chan struct{}, 1),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
		locks:   map[session.ThreadID]*lock{},
		stop:    func() {},
	}
}

func openFile(path string) (db *bolt.DB, err error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	err = survive(path, func() error {
		if db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType}); err != nil {
			return explain(err)
		}
		return db.Update(prepare)
	})
	if _, panicked := errors.AsType[*session.PanicError](err); err != nil && db != nil && !panicked { // a panic may have left it locked
		err = errors.Join(err, db.Close())
	}
	return db, err
}

// survive makes a panic over a file an error.
func survive(path string, f func() error) error {
	err := session.Recover(f)
	if _, panicked := errors.AsType[*session.PanicError](err); panicked {
		return fmt.Errorf("the file is damaged (see 'dewpoint check-store %s'): %w", path, err)
	}
	return err
}

func prepare(tx *bolt.Tx) error {
	for _, b := range buckets {
		if _, err := tx.CreateBucketIfNotExists(b.name()); err != nil {
			return fmt.Errorf("create bucket: %w", err)
		}
	}
	size, err := savedSize(tx)
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	if err := saveSize(tx, size); err != nil {
		return fmt.Errorf("save size: %w", err)
	}
	return tx.Bucket(meta.name()).Put([]byte("format"), []byte(format))
}

// inspect looks at an existing file without the right to write to it. bbolt panics on some damaged pages, a page beyond the
// end of a cut file would be a bus error later, and one that leads back to itself the end of the process.
func inspect(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is a directory or a device, not a file")
	}
	return reading(path, func(tx *bolt.Tx, file *os.File) error {
		if err := recognise(tx, info.Size()); err != nil {
			return err
		}
		var damages []error
		checkTrees(tx, file, false, func(err error) { damages = append(damages, err) })
		if len(damages) > 0 {
			return fmt.Errorf("the file is damaged (see 'dewpoint check-store %s'): %w", path, damages[0])
		}
		return nil
	})
}

// reading looks at a file that no process may write to meanwhile.
func reading(path string, look func(*bolt.Tx, *os.File) error) error {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return survive(path, func() (err error) {
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: lockWait})
		if err != nil {
			return explain(err)
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return db.View(func(tx *bolt.Tx) error { return look(tx, file) })
	})
}

func recognise(tx *bolt.Tx, size int64) error {
	if tx.Size() > size {
		return fmt.Errorf("the file is damaged: %d bytes are missing at its end", tx.Size()-size)
	}
	root := tx.Cursor()
	if first, _ := root.First(); first == nil {
		return nil // made, but a crash came before the first write
	}
	m := tx.Bucket(meta.name())
	if m != nil && string(m.Get([]byte("format"))) == oldFormat {
		return codec.ErrOld
	}
	if m == nil || string(m.Get([]byte("format"))) != format {
		return errors.New("the file is not a session store of this version")
	}
	for _, b := range buckets {
		if tx.Bucket(b.name()) == nil {
			if b.optional() {
				continue
			}
			return fmt.Errorf("the file is damaged: bucket %q is missing", b.name())
		}
		tx.Bucket(b.name()).Cursor().Last()
	}
	return nil
}

var errInUse = errors.New("another process uses the file")

func explain(err error) error {
	var system *os.PathError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w (waited %v for its lock)", errInUse, lockWait)
	case errors.As(err, &system):
		return err
	}
	return fmt.Errorf("the file is damaged or not a session store: %w", err)
}
