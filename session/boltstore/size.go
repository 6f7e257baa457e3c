package boltstore

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

const (
	recordCost = 16 // bytes that a page spends on each record on top of its key and value
	pagesCost  = 2  // the pages' bytes for each of the records': they are half full (1.9 to 2.0 once evictions are usual)
)

// cost is what a record takes whose name is so long, nothing if its value is nil.
func cost(name int, value []byte) int64 {
	if value == nil {
		return 0
	}
	return pagesCost * int64(recordCost+name+len(value))
}

// counts reports whether what records of this kind take is counted: of the others there are few.
func (b bucket) counts() bool { return b != meta && b != outbox }

// saveSize keeps in the file how many bytes the records take in it, in the transaction that changes them. An earlier version kept two
// numbers, of which the sum was the size.
func saveSize(tx *bolt.Tx, size int64) error {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b, uint64(size)) //nolint:gosec // the same 64 bits
	return tx.Bucket(meta.name()).Put([]byte("sizes"), b)
}

// savedSize counts anew if the file was written before the size was kept.
func savedSize(tx *bolt.Tx) (int64, error) {
	b := tx.Bucket(meta.name()).Get([]byte("sizes"))
	if len(b) != 16 {
		return measured(tx)
	}
	return int64(binary.BigEndian.Uint64(b) + binary.BigEndian.Uint64(b[8:])), nil //nolint:gosec // the same 64 bits
}

// measured reads the whole file.
func measured(tx *bolt.Tx) (size int64, err error) {
	for _, b := range buckets {
		if !b.counts() {
			continue
		}
		err := tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
			size += cost(len(name), value)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// Size is how many bytes the records take, as MaxSize counts them, and how long the file is. What is queued comes on top.
func (s *Store) Size() (records, file int64, err error) {
	err = s.view(func(tx *bolt.Tx) (err error) {
		records, err = savedSize(tx)
		file = tx.Size()
		return err
	})
	return records, file, err
}

// full reports whether size is more than the store may hold.
func (s *Store) full(size int64) bool { return s.options.MaxSize > 0 && size > s.options.MaxSize }
