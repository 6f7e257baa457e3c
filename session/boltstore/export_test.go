package boltstore

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Damage makes change replace an entry in the file.
func Damage(t testing.TB, s *Store, id session.ThreadID, seq uint64, change func([]byte) []byte) {
	t.Helper()
	must(t, s.flush(t.Context()))
	must(t, s.db.Update(func(tx *bolt.Tx) error {
		bucket, name := split(events.entry(id, seq))
		return tx.Bucket(bucket).Put(name, change(bytes.Clone(tx.Bucket(bucket).Get(name))))
	}))
}

// Dump commits what is queued and returns every record in the file, but for the time of the first deletion that the file may still show, and the
// numbers of the last batches of writers, which belong to no session.
func Dump(t testing.TB, s *Store) map[string]string {
	t.Helper()
	must(t, s.flush(t.Context()))
	all := map[string]string{}
	must(t, s.db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(name, value []byte) error {
				all[string(bucket)+string(name)] = string(value)
				return nil
			})
		})
	}))
	delete(all, meta.key(erasedName))
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, totals.prefix("")) })
	return all
}
