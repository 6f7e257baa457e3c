package boltstore

import (
	"testing"

	bolt "go.etcd.io/bbolt"
)

// Dump commits what is queued and returns every record in the file.
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
	return all
}
