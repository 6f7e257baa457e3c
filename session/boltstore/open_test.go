package boltstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestPathsWithoutAFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no path", Options{}, "set store.path"},
		{"no directory", Options{Path: filepath.Join(t.TempDir(), "missing", "x")}, "missing does not exist: create it, or set store.path"},
		{"a directory", Options{Path: t.TempDir()}, "directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := os.Lstat(tt.o.Path + ".lock"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a lock file is left (%v)", err)
			}
		})
	}
}

func TestUsedByAnother(t *testing.T) {
	s := start(t, Options{})
	_, err := Open(s.options)
	if err == nil || !strings.Contains(err.Error(), "another process uses the file") {
		t.Fatalf("got %v", err)
	}
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.Close())
	must(t, second(start(t, s.options).Thread(t.Context(), "t")))
}

// TestLockFile: the store opens whatever the lock file contains.
func TestLockFile(t *testing.T) {
	for _, content := range [][]byte{nil, {0}, make([]byte, 100), bytes.Repeat([]byte("garbage"), 10_000), otherBolt(t, nil)} {
		path := filepath.Join(t.TempDir(), "store.db")
		must(t, os.WriteFile(path+".lock", content, 0o600))
		s := start(t, Options{Path: path})
		if _, err := Open(s.options); !errors.Is(err, ErrInUse) {
			t.Errorf("%d bytes: a second start: %v", len(content), err)
		}
		must(t, s.Close())
	}
}

// TestRemovedLockFile: if a lock file is removed while a start waits for it, the start does not use the removed file as its lock.
func TestRemovedLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db.lock")
	first, err := takeLock(path)
	must(t, err)
	waiting, err := os.Open(path)
	must(t, err)
	defer waiting.Close()
	if !isAt(waiting, path) {
		t.Error("the file counts as removed")
	}
	must(t, first.undo())
	if isAt(waiting, path) {
		t.Error("the removed file counts")
	}
	next, err := takeLock(path)
	must(t, err)
	defer next.Close()
	if isAt(waiting, path) || !isAt(next.File, path) {
		t.Error("the removed file counts in place of the new one")
	}
}

func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, start(t, Options{Path: path}).Append(t.Context(), twoEvents("t", 0)))
}

// TestFileWithoutBuckets: a crash can leave a file that was created, but not written to.
func TestFileWithoutBuckets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Close())
	must(t, start(t, Options{Path: path}).Append(t.Context(), twoEvents("t", 0)))
}

// otherBolt returns a file of another program.
func otherBolt(t *testing.T, o *bolt.Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, o)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error { return second(tx.CreateBucket([]byte("somebody's"))) }))
	must(t, db.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}
