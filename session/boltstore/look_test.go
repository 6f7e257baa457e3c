package boltstore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// TestLookChangesNothing looks at a store before it exists, while it is open, afterwards, and once it is damaged.
func TestLookChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	if _, err := boltstore.Look(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before it exists: %v", err)
	}
	store, err := boltstore.Open(boltstore.Options{Path: path, Content: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Look(path); !errors.Is(err, boltstore.ErrInUse) {
		t.Errorf("while it is open: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found, err := boltstore.Look(path)
	if err != nil || found.Sessions != 0 || found.Bytes != int64(len(before)) {
		t.Errorf("afterwards: %+v, %v", found, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	damaged := bytes.Repeat([]byte{0xff}, len(before))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Look(path); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(damaged, after) {
		t.Errorf("the damaged file was changed: %v", err)
	}
}
