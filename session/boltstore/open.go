package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// format is the format as recorded in the file.
const format = "dewpoint session store 2"

// Options configure a store. Only Path is required. Package config validates them.
//
// MaxSize limits the size of all records, including the half empty pages that they are in. The file may become up to half
// as large again, because it keeps the pages that a commit replaces until the next commits. Above the cap, a goroutine
// deletes whole threads until the size is 15/16 of the cap; the append or condensation that exceeded it does not wait. The
// newest thread is never deleted, and no thread is deleted before the forks that share it.
type Options struct {
	Path    string        // of the file, which is created if it does not exist; its directory must exist
	TTL     time.Duration // a thread is deleted this long after its last write; 0 means never
	Content bool          // store payloads of events
	Keys    *seal.Keys    // encrypt payloads and summaries; nil to store them in clear
	MaxSize int64         // bytes; above it, the threads with the oldest last writes are deleted; 0 means no cap
}

const (
	lockWait         = time.Second
	defaultMaxQueued = 64 << 20 // bytes in the write queue above which appends wait
)

// Open opens the store, or creates it. A file that is in use by another process, is damaged or is not a session store is an
// error, and is not changed.
func Open(o Options) (*Store, error) {
	db, err := openFile(o.Path)
	if errors.Is(err, errDamaged) || errors.Is(err, errNoStore) {
		err = fmt.Errorf("%w; see 'dewpoint check-store %s'", err, o.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("open session store %s: %w", o.Path, err)
	}
	s := &Store{
		db:          db,
		options:     o,
		maxQueued:   defaultMaxQueued,
		content:     codec.Content{Keep: o.Content, Keys: o.Keys},
		pending:     pending{queued: map[string][]byte{}, room: make(chan struct{}), holds: map[string]holds{}},
		timer:       time.NewTimer(linger),
		full:        make(chan struct{}, 1),
		quit:        make(chan struct{}),
		locks:       map[session.ThreadID]*time.Time{},
		stopSweeper: func() {},
	}
	s.writer.Go(s.write)
	s.startSweeper()
	return s, nil
}

func openFile(path string) (db *bolt.DB, err error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	err = survive(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType})
		if err != nil {
			return explain(err)
		}
		return db.Update(initialise)
	})
	if err == nil || db == nil {
		return db, err
	}
	if _, panicked := errors.AsType[*session.PanicError](err); panicked {
		return nil, err // closing the file may wait for a lock that bbolt never releases
	}
	return nil, errors.Join(err, db.Close())
}

// survive calls f and turns a panic over a damaged file into an error.
func survive(f func() error) error {
	err := session.Recover(f)
	if _, panicked := errors.AsType[*session.PanicError](err); panicked {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// initialise creates the records that a new file lacks.
func initialise(tx *bolt.Tx) error {
	for _, b := range buckets {
		if _, err := tx.CreateBucketIfNotExists(b.name()); err != nil {
			return fmt.Errorf("create bucket: %w", err)
		}
	}
	if err := saveSize(tx, savedSize(tx)); err != nil {
		return fmt.Errorf("save size: %w", err)
	}
	return tx.Bucket(meta.name()).Put([]byte("format"), []byte(format))
}

// inspect checks an existing file, which it opens read-only. bbolt panics on some damaged pages. A page beyond the end of a
// truncated file would be a bus error later, and a page that refers back to itself would end the process.
func inspect(path string) error {
	info, err := os.Stat(path)
	folder := filepath.Dir(path)
	if _, missing := os.Stat(folder); errors.Is(missing, os.ErrNotExist) {
		return fmt.Errorf("the folder %s does not exist: create it, or set store.path to a file in another", folder)
	}
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is a directory or a device, not a file")
	}
	return readFile(path, func(tx *bolt.Tx, file *os.File) error {
		if err := checkFormat(tx, info.Size()); err != nil {
			return err
		}
		var damages []error
		checkTrees(tx, file, false, func(err error) { damages = append(damages, err) })
		if len(damages) > 0 {
			return fmt.Errorf("%w: %w", errDamaged, damages[0])
		}
		return nil
	})
}

// readFile opens a file read-only and calls read. Meanwhile no process can open it for writing.
func readFile(path string, read func(*bolt.Tx, *os.File) error) error {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return survive(func() (err error) {
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: lockWait})
		if err != nil {
			return explain(err)
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return db.View(func(tx *bolt.Tx) error { return read(tx, file) })
	})
}

// checkFormat checks that a file of the given size is a complete session store of this version.
func checkFormat(tx *bolt.Tx, size int64) error {
	if tx.Size() > size {
		return fmt.Errorf("%w: %d bytes are missing at its end", errDamaged, tx.Size()-size)
	}
	root := tx.Cursor()
	if first, _ := root.First(); first == nil {
		return nil // created, but not written to before a crash
	}
	m := tx.Bucket(meta.name())
	if m == nil || string(m.Get([]byte("format"))) != format {
		return errNoStore
	}
	for _, b := range buckets {
		found := tx.Bucket(b.name())
		if found == nil {
			return fmt.Errorf("%w: bucket %q is missing", errDamaged, b.name())
		}
		found.Cursor().Last()
	}
	return nil
}

var (
	errInUse   = errors.New("another process uses the file")
	errDamaged = errors.New("the file is damaged")
	errNoStore = errors.New("the file is not a session store of this version")
)

func explain(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("%w (waited %v for its lock)", errInUse, lockWait)
	}
	if _, system := errors.AsType[*os.PathError](err); system {
		return err
	}
	return fmt.Errorf("%w or not a session store: %w", errDamaged, err)
}
