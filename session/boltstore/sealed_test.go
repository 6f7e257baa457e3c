package boltstore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func TestSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	sessiontest.Sealed(t, func(t *testing.T, keys *seal.Keys) session.Backend {
		return open(t, boltstore.Options{Path: path, Content: true, Keys: keys})
	}, func(t *testing.T) []byte {
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return all
	})
}

// TestSealedIsBoundToItsThread swaps the records of two threads of different tenants in the file.
func TestSealedIsBoundToItsThread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	o := boltstore.Options{Path: path, Content: true, Keys: sessiontest.Keys(t, "k")}
	s := open(t, o)
	ids := map[session.ThreadID]session.CondensationID{}
	for _, id := range []session.ThreadID{"thread-a", "thread-b"} {
		b := session.Batch{Thread: session.Thread{ID: id, Tenant: string(id), Len: 1}, Events: []session.Event{{Pos: 1, Kind: session.User, Payload: []byte("of " + id)}}}
		must(t, s.Append(t.Context(), b))
		c, err := s.Condense(t.Context(), id, session.Condensation{Prefix: 1, Summary: "of " + string(id)})
		must(t, err)
		ids[id] = c.ID
	}
	must(t, s.Close())
	exchange(t, path, "thread-a", "thread-b")
	s = open(t, o)
	defer s.Close()
	for thread, id := range ids {
		if text, err := s.Summary(context.Background(), id); !errors.Is(err, session.ErrUnreadable) || text != "" {
			t.Errorf("summary of %s: %q, %v", thread, text, err)
		}
		if all, err := s.Events(context.Background(), thread, 1, 10); err != nil || len(all) != 2 || all[0].Payload != nil {
			t.Errorf("events of %s: %v, %v", thread, all, err)
		}
	}
}

// exchange swaps the first events and summaries of two threads.
func exchange(t *testing.T, path, a, b string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	defer db.Close()
	must(t, db.Update(func(tx *bolt.Tx) error {
		moved := 0
		for _, bucket := range []string{"e", "y"} {
			bucket := tx.Bucket([]byte(bucket))
			found := map[string][]byte{}
			must(t, bucket.ForEach(func(k, v []byte) error {
				found[string(k)] = bytes.Clone(v)
				return nil
			}))
			for k := range found {
				if other := bytes.Replace([]byte(k), []byte(a), []byte(b), 1); string(other) != k && len(found[string(other)]) > 0 {
					must(t, bucket.Put([]byte(k), found[string(other)]))
					must(t, bucket.Put(other, found[k]))
					moved++
				}
			}
		}
		if moved != 3 { // an event, the condensation's entry, a summary
			t.Fatalf("%d pairs were exchanged", moved)
		}
		return nil
	}))
}

// TestFileIsTheOwners: other users of the machine cannot read the file, nor the recovery file.
func TestFileIsTheOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: this system has no such permissions")
	}
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, open(t, boltstore.Options{Path: path}).Close())
	for _, name := range []string{path, path + ".recovery"} {
		info, err := os.Stat(name)
		must(t, err)
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s: mode %v", name, mode)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
