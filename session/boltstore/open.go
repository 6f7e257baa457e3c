package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// format is the format as recorded in the file, which begins with formatName in every version.
const (
	formatName = "dewpoint session store "
	format     = formatName + "3"
)

// Options configure a store. Only Path is required. Package config validates them.
//
// MaxSize limits the size of all records, including the half-empty pages that they are in. The file may become up to 1.5 times as large,
// because it keeps the pages that a commit replaces until later commits. When the cap is exceeded, a goroutine deletes whole threads until
// the size is 15/16 of the cap; the append or condensation that exceeded it does not wait. The newest thread is never deleted, and no
// thread is deleted before those that need it.
type Options struct {
	Path    string        // of the file, which is created if it does not exist; its directory must exist
	TTL     time.Duration // a thread is deleted this long after its last write; 0 means never
	Content bool          // store payloads of events
	Keys    *seal.Keys    // encrypt payloads and summaries; nil to store them in clear
	MaxSize int64         // bytes; above it, the threads with the oldest last writes are deleted; 0 means no cap

	// Warn is called with problems that an operator should know of, but which do not prevent the store from opening: a damaged file was
	// renamed, or the recovery file cannot be written. After Open it is called, from another goroutine, if a compaction fails. It may be nil.
	Warn func(message string, err error)
}

func (o *Options) warn(message string, err error) {
	if o.Warn != nil {
		o.Warn(message, err)
	}
}

// growth is by how much the file grows at once. bbolt's own 16 MiB would be most of a small store.
const growth = 1 << 20

const defaultMaxQueued = 64 << 20 // bytes in the write queue above which appends wait

// Open opens the store, or creates it. If the file is damaged, Open renames it to NAME.damaged-TIME, deletes the damaged files that were
// renamed before, and begins a new file, which gets the secret and the settings of the old one from NAME.recovery. A file counts as damaged
// too if the last process found damage in it, or if the last two starts ended while they were opening it.
//
// Open fails, and does not change the file, if another process uses it, it cannot be read, it has another format, or it is not a session
// store.
func Open(o Options) (*Store, error) {
	f := &opening{Options: o}
	if err := f.openFile(); err != nil {
		return nil, fmt.Errorf("open session store %s: %w", o.Path, err)
	}
	s := &Store{
		lock:        f.lock,
		db:          f.db,
		recovery:    f.recovery,
		options:     o,
		maxQueued:   defaultMaxQueued,
		content:     codec.NewContent(o.Content, o.Keys),
		damage:      damage{stuck: make(chan struct{})},
		pending:     pending{queued: map[string][]byte{}, room: make(chan struct{}), holds: map[string]holds{}},
		timer:       time.NewTimer(linger),
		full:        make(chan struct{}, 1),
		quit:        make(chan struct{}),
		written:     make(chan struct{}),
		locks:       map[session.ThreadID]*time.Time{},
		compacts:    make(chan chan error),
		between:     make(chan func()),
		stopSweeper: func() {},
	}
	go s.write()
	s.startSweeper()
	s.startCompactor()
	return s, nil
}

// ErrInUse is returned by Open if another process has the file.
var ErrInUse = errors.New("another process uses the file")

var errVersion = errors.New("the file is not a session store of this version")

// opening is a file that is being opened.
type opening struct {
	Options
	lock     *lockFile // NAME.lock
	recovery *recovery
	size     int64 // of the file, before it was opened
	db       *bolt.DB
}

// openFile opens the file. It takes a separate lock first. A damaged file may end the process while it is opened, which counts as a crash.
// The lock makes sure before that no other process uses the file, so that a start that is merely refused does not count.
func (f *opening) openFile() error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	var err error
	if f.lock, err = takeLock(f.Path + ".lock"); err != nil {
		return err
	}
	_ = removePart(linked(f.Path)) // of a compaction that did not end
	if err = f.open(); errors.Is(err, session.ErrDamaged) {
		if err = f.setAside(err); err == nil {
			err = f.open()
		}
	}
	if err != nil {
		return errors.Join(err, f.lock.undo())
	}
	return nil
}

// checkPath explains the usual mistakes.
func checkPath(path string) error {
	if path == "" {
		return errors.New("it has no name: set store.path")
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the folder %s does not exist: create it, or set store.path to a file in another", folder)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return errors.New("the path is a directory or a device, not a file")
	}
	return err
}

// open makes one attempt to open the file. While it does, the recovery file counts the start as a crash. If the file is damaged and is to be
// renamed, the error wraps session.ErrDamaged.
func (f *opening) open() (err error) {
	f.size = 0
	if info, err := os.Stat(f.Path); err == nil {
		f.size = info.Size()
	}
	if f.recovery, err = readRecovery(&f.Options); err != nil {
		return err
	}
	before := f.recovery.content
	known := before.Format != "" // a recovery file with nothing but the count of starts proves nothing
	if cause := before.condemns(); cause != "" && f.size > 0 && f.wasStore(known) {
		return fmt.Errorf("%w: %s", session.ErrDamaged, cause)
	}
	_ = f.recovery.change(func(c *recoveryContent) { c.Crashes++ })
	now, err := f.load()
	if err != nil {
		_ = f.recovery.change(func(c *recoveryContent) { *c = before })
		if errors.Is(err, session.ErrDamaged) && !f.wasStore(known) {
			return fmt.Errorf("it is not a session store, or damaged beyond recognition (%v): choose another file, or rename it yourself", err) //nolint:errorlint // not wrapped, because such a file is not renamed
		}
		return err
	}
	if err := f.recovery.change(func(c *recoveryContent) { *c = now }); err != nil {
		f.warn("the recovery file of the store cannot be written: if the store's file is lost, so are the secret and the overrides", err)
	}
	return nil
}

// load opens the file with bbolt, checks it, creates what a new file lacks, and returns the new content of the recovery file.
func (f *opening) load() (now recoveryContent, err error) {
	err = recovered(func() (err error) {
		f.db, err = bolt.Open(f.Path, 0o600, &bolt.Options{
			Timeout: lockWait, FreelistType: bolt.FreelistMapType,
			NoFreelistSync: true, // bbolt would otherwise write to a file of another program before its format is known
		})
		if err != nil {
			return f.explain(err)
		}
		f.db.AllocSize = growth
		err = f.db.Update(func(tx *bolt.Tx) error {
			isNew, err := f.check(tx)
			if err == nil {
				f.db.NoFreelistSync = false
				err = initialise(tx)
			}
			if err == nil {
				err = f.recovery.content.restore(tx, isNew)
				now.copyFrom(tx)
			}
			return err
		})
		if errors.Is(err, syscall.EFBIG) { // no process may write that much
			err = fmt.Errorf("%w: its list of free pages names some far behind its end: %w", session.ErrDamaged, err)
		}
		if err != nil {
			return errors.Join(err, f.db.Close())
		}
		return nil
	})
	return now, err
}

// explain returns the meaning of bbolt's error.
func (f *opening) explain(err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return inUse()
	case errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w of bbolt", errVersion, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), !system && 0 < f.size && f.size < 2*int64(os.Getpagesize()):
		return fmt.Errorf("%w: %w", session.ErrDamaged, err)
	}
	return err
}

// check checks that the database is a complete store of this version, and reports whether it is new. It reads the first and the last page
// of each bucket, so that a page at which bbolt would end the process does so at the start rather than during a request.
func (f *opening) check(tx *bolt.Tx) (isNew bool, err error) {
	if missing := tx.Size() - f.size; missing > 0 && f.size > 0 {
		return false, fmt.Errorf("%w: %d bytes are missing at its end", session.ErrDamaged, missing)
	}
	if first, _ := tx.Cursor().Seek(nil); first == nil {
		if f.size > 0 && f.recovery.content.Format != "" {
			return false, fmt.Errorf("%w: it has no records any more", session.ErrDamaged)
		}
		return true, nil // it may be left from a crash at its creation
	}
	found, required := 0, len(buckets)-len(added)
	for _, b := range buckets {
		if records := tx.Bucket(b.name()); records != nil {
			if !slices.Contains(added[:], b) {
				found++
			}
			records.Cursor().Seek(nil)
			records.Cursor().Seek([]byte{0xff})
		}
	}
	var recorded []byte
	if m := tx.Bucket(meta.name()); m != nil {
		recorded = m.Get([]byte("format"))
	}
	known, valid := bytes.HasPrefix(recorded, []byte(formatName)), string(recorded) == format
	switch {
	case known && !valid:
		return false, fmt.Errorf("%w: its format is %.50q, and this version reads %q: name another file in store.path, or move this one away", errVersion, recorded, format)
	case !known && found <= required/2:
		return false, errVersion
	case !valid, found < required:
		return false, fmt.Errorf("%w: it has %d of %d kinds of records, and the format %.50q", session.ErrDamaged, found, required, recorded)
	}
	return false, nil
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

// magic is the signature of bbolt, which follows the header of a file's first page.
const (
	magic   = 0xED0CDAED
	magicAt = 16
)

// wasStore reports whether a damaged file was a store. So that no file of another program is renamed, it requires two of three signs: a
// recovery file that names a format (known), bbolt's signature or zeros at the beginning of the file, and a format record in the file.
func (f *opening) wasStore(known bool) bool {
	file, err := os.Open(f.Path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, magicAt+4)
	_, err = io.ReadFull(file, head)
	begins := err == nil && binary.NativeEndian.Uint32(head[magicAt:]) == magic || len(bytes.Trim(head, "\x00")) == 0
	return known && begins || (known || begins) && contains(file, "format"+formatName) // in a page, the value follows its key
}

// contains reports whether a file contains a text after the current offset.
func contains(file io.Reader, text string) bool {
	block, kept := make([]byte, 1<<20), 0
	for {
		n, err := io.ReadFull(file, block[kept:])
		if bytes.Contains(block[:kept+n], []byte(text)) {
			return true
		}
		if err != nil {
			return false
		}
		kept = copy(block, block[len(block)-len(text):])
	}
}

// setAside renames the damaged file. If that fails, the next start tries again before it opens the file.
func (f *opening) setAside(cause error) error {
	_ = f.recovery.change(func(c *recoveryContent) { c.Damage = cause.Error() })
	err := setAside(&f.Options, f.Path, "the file of the store was damaged: it was renamed, and a new one begins. Conversations, what was spent of budgets, "+
		"experiments and findings not yet delivered start over; the secret and the overrides are kept", cause)
	if err == nil {
		_ = f.recovery.change(func(c *recoveryContent) { c.Crashes, c.Damage = 0, "" })
	}
	return err
}

// setAside renames a damaged file and tells the operator. It replaces no other file, and then deletes those renamed before, so that damaged
// files do not fill the volume.
func setAside(o *Options, path, message string, cause error) error {
	older, err := setAsideBefore(path)
	if err != nil {
		return fmt.Errorf("look for damaged files renamed before: %w (%v)", err, cause) //nolint:errorlint // it is not set aside
	}
	aside := path + damagedSuffix + time.Now().UTC().Format(damagedTime)
	for n, base := 2, aside; slices.Contains(older, aside); n++ {
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("rename the damaged file: %w (%v)", err, cause) //nolint:errorlint // it is not set aside
	}
	o.warn(message, fmt.Errorf("%s is now %s: %w", path, aside, cause))
	for _, name := range older {
		if err := os.Remove(name); err != nil {
			o.warn("a damaged file renamed before cannot be deleted: delete it, so that it does not fill the volume", err)
		}
	}
	return nil
}

// A damaged file is renamed to NAME.damaged-TIME, or NAME.damaged-TIME-2 if there is one.
const (
	damagedSuffix = ".damaged-"
	damagedTime   = "20060102T150405Z"
)

// setAsideBefore returns the names of damaged files of this path that were renamed before.
func setAsideBefore(path string) (names []string, err error) {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		at, ours := strings.CutPrefix(e.Name(), name+damagedSuffix)
		at, n, _ := strings.Cut(at, "-")
		if _, err := time.Parse(damagedTime, at); ours && err == nil && strings.Trim(n, "0123456789") == "" {
			names = append(names, folder+e.Name())
		}
	}
	return names, err
}
