package boltstore

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

const (
	recordCost = 16 // bytes that a page spends on each record on top of its key and value
	pagesCost  = 2  // the pages' bytes for each of the records': they are half full (1.9 to 2.0 once evictions are usual)
)

// sizes is how many bytes the records take in the file. It is kept there too, and changes in the transaction that changes
// them.
type sizes struct {
	logs    int64 // threads, their log entries and summaries, and sessions
	indexes int64 // places and traces, and which thread left those
}

func (z sizes) total() int64 { return z.logs + z.indexes }

// logsIn is the part of n bytes that is logs (rounded up), if logs and indexes have the same shares in it as in z.
func (z sizes) logsIn(n int64) int64 {
	return int64(float64(n)*float64(z.logs)/float64(max(z.total(), 1))) + 1
}

func (z *sizes) add(b bucket, n int64) {
	switch b {
	case meta, outbox: // few
	case places, traces, marked:
		z.indexes += n
	default:
		z.logs += n
	}
}

// cost is what a record takes whose name is so long, nothing if its value is nil.
func cost(name int, value []byte) int64 {
	if value == nil {
		return 0
	}
	return pagesCost * int64(recordCost+name+len(value))
}

func (z sizes) save(tx *bolt.Tx) error {
	b := binary.BigEndian.AppendUint64(nil, uint64(z.logs)) //nolint:gosec // the same 64 bits
	b = binary.BigEndian.AppendUint64(b, uint64(z.indexes)) //nolint:gosec // the same 64 bits
	return tx.Bucket(meta.name()).Put([]byte("sizes"), b)
}

// savedSizes counts anew if the file was written before there were sizes.
func savedSizes(tx *bolt.Tx) (sizes, error) {
	b := tx.Bucket(meta.name()).Get([]byte("sizes"))
	if len(b) != 16 {
		return measured(tx)
	}
	return sizes{
		logs:    int64(binary.BigEndian.Uint64(b)),     //nolint:gosec // the same 64 bits
		indexes: int64(binary.BigEndian.Uint64(b[8:])), //nolint:gosec // the same 64 bits
	}, nil
}

// measured reads the whole file.
func measured(tx *bolt.Tx) (sizes, error) {
	var z sizes
	for _, b := range buckets {
		err := tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
			z.add(b, cost(len(name), value))
			return nil
		})
		if err != nil {
			return z, err
		}
	}
	return z, nil
}

// sizes is what is on disk. What is queued comes on top.
func (s *Store) sizes() (z sizes, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		z, err = savedSizes(tx)
		return err
	})
	return z, err
}

// Size is how many bytes the records take, as MaxSize counts them, and how long the file is. What is queued comes on top.
func (s *Store) Size() (records, file int64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		z, err := savedSizes(tx)
		records, file = z.total(), tx.Size()
		return err
	})
	return records, file, err
}

// full reports whether z is more than the store may hold.
func (s *Store) full(z sizes) bool { return s.options.MaxSize > 0 && z.total() > s.options.MaxSize }
