package boltstore

import (
	"context"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const sweepPlaces = 4096 // looked at in one read

// sweepIndexes deletes the places and traces that point to no thread any more, and the lists of what threads left that are
// gone.
func (s *Store) sweepIndexes(ctx context.Context) error {
	for _, b := range [...]bucket{places, traces, marked} {
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
		err := s.view(func(tx *bolt.Tx) error {
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
		if id := threadOf(b, key, value); tx.Bucket(threads.name()).Get([]byte(id)) == nil {
			orphans = append(orphans, b.key(string(key)))
		}
	}
	return orphans, nil
}

// deleteOrphans looks at each again, because its thread may have begun, or it may have been overwritten, since.
func deleteOrphans(c *change, keys []string) {
	for _, key := range keys {
		id := threadOf(bucket(key[0]), []byte(key[1:]), c.get(key))
		if c.get(threads.key(string(id))) == nil {
			c.delete(key)
		}
	}
}

// threadOf is the thread that an index entry is about, empty if it cannot be read.
func threadOf(b bucket, name, value []byte) session.ThreadID {
	if b == marked {
		return owner(name)
	}
	p, _ := codec.ParsePlace(value)
	return p.Thread
}
