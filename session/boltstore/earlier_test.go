package boltstore

import (
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestFileOfAnEarlierVersion: a file of a version without budgets and outbox is intact, and opens.
func TestFileOfAnEarlierVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(Options{Path: path})
	must(t, err)
	must(t, s.db.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket(accounts.name()), tx.DeleteBucket(outbox.name()))
	}))
	must(t, s.Close())
	c, err := Check(path)
	must(t, err)
	if len(c.Damages) > 0 {
		t.Errorf("damages: %q", c.Damages)
	}
	s, err = Open(Options{Path: path})
	must(t, err)
	must(t, s.Close())
}
