package boltstore

import (
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
		{"no path", Options{}, "no such file"},
		{"no directory", Options{Path: filepath.Join(t.TempDir(), "missing", "x")}, "missing does not exist: create it, or set store.path"},
		{"a directory", Options{Path: t.TempDir()}, "directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
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
