package boltstore

import (
	"context"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const sweepPlaces = 4096 // looked at in one read

// sweepIndexes deletes the places and traces that point to no thread any more.
func (s *Store) sweepIndexes(ctx context.Context) error {
	for _, b := range [...]bucket{places, traces} {
		if err := s.sweepPlaces(ctx, b); err != nil {
			return err
		}
	}
	return s.flush(ctx)
}

// sweepPlaces goes through a bucket of places in short reads, because a long one keeps freed pages from being reused.
func (s *Store) sweepPlaces(ctx context.Context, b bucket) error {
	var q quota
	for from := []byte{}; from != nil; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var orphans []string
		err := s.db.View(func(tx *bolt.Tx) error {
			orphans, from = orphaned(tx, b, from)
			return nil
		})
		if err != nil {
			return err
		}
		if len(orphans) == 0 {
			continue
		}
		err = s.change(ctx, q.spent(uint64(len(orphans))), func(c *change) error {
			deleteOrphans(c, orphans)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orphaned lists the keys of places without a thread, and where to go on (nil: at the end).
func orphaned(tx *bolt.Tx, b bucket, from []byte) (orphans []string, next []byte) {
	cursor, seen := tx.Bucket(b.name()).Cursor(), 0
	for key, value := cursor.Seek(from); key != nil; key, value = cursor.Next() {
		if seen++; seen > sweepPlaces {
			return orphans, slices.Clone(key)
		}
		p, err := codec.ParsePlace(value)
		if err != nil || tx.Bucket(threads.name()).Get([]byte(p.Thread)) == nil {
			orphans = append(orphans, b.key(string(key)))
		}
	}
	return orphans, nil
}

// deleteOrphans looks at each again, because its thread may have begun, or it may have been overwritten, since.
func deleteOrphans(c *change, keys []string) {
	for _, key := range keys {
		p, err := codec.ParsePlace(c.get(key))
		if err != nil || c.get(threads.key(string(p.Thread))) == nil {
			c.delete(key)
		}
	}
}
