package boltstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

const (
	lockWait = time.Second
	lockPoll = 50 * time.Millisecond
)

// lockFile is a file that is locked until it is closed. It says what the process with the lock announces.
type lockFile struct {
	*os.File
	created bool // by this start
}

// takeLock locks the file at path, which it creates if it does not exist. It waits for another process for as long as lockWait.
func takeLock(path string) (*lockFile, error) {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		if l, err := tryLock(path); l != nil || err != nil {
			return l, err
		}
		if time.Now().After(deadline) {
			return nil, inUse()
		}
	}
}

// tryLock is takeLock without waiting: it returns nil if another process has the lock.
func tryLock(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the same folder as the file that the operator names
	created := err == nil
	if errors.Is(err, os.ErrExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // as above
	}
	if err != nil {
		return nil, err
	}
	locked, err := platform.TryLock(f)
	if !locked || !isAt(f, path) {
		return nil, errors.Join(err, f.Close())
	}
	return &lockFile{f, created}, nil
}

// isAt reports whether an open file is still the one at path. Another process whose start failed may have removed it in the meantime.
func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(path)
	return err == nil && os.SameFile(opened, found)
}

// undo unlocks the file, and removes it if this start has created it. Windows removes no open file, so there it remains.
func (l *lockFile) undo() error {
	if l.created {
		_ = os.Remove(l.Name())
	}
	return l.Close()
}

func inUse() error { return fmt.Errorf("%w (waited %v for its lock)", ErrInUse, lockWait) }

// maxAnnounced is the length of the longest announcement that is read, in bytes.
const maxAnnounced = 4 << 10

// Announce leaves a text for processes that cannot open the file while this one has it, to be read with Announced. The error is harmless.
func (s *Store) Announce(text []byte) error {
	if err := s.lock.Truncate(0); err != nil {
		return err
	}
	_, err := s.lock.WriteAt(text, 0)
	return err
}

// Announced returns what the process that has the file at path has announced, nil if it cannot be read. If no process has the file, it is what
// the last one announced.
func Announced(path string) []byte {
	f, err := os.Open(path + ".lock") //nolint:gosec // the operator chose this folder
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, maxAnnounced))
	if err != nil {
		return nil
	}
	return text
}
