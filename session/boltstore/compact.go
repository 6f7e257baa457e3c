package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// bbolt does not overwrite pages that become free, so that the file keeps what was deleted. A compaction copies all records into a new file,
// and replaces the old one by it. Requests go on meanwhile: records are copied in short transactions, the writer notes the keys that it
// writes, and their records are copied again. Only while the last of these are copied and the files are exchanged do commits wait, and only
// during the exchange reads.
const (
	compactAfter  = 12 * time.Hour // after the first deletion, unless a compaction is requested earlier
	compactCheck  = time.Hour      // between two looks at whether that is due, which is also how soon a failed compaction is tried again
	compactBatch  = 1 << 20        // bytes of records that are copied in one transaction
	compactRounds = 10             // in which what was written meanwhile is copied, at most, while commits go on
	compactFew    = 500            // records that are copied while commits wait, unless the rounds are used up
	compactMost   = 1 << 18        // keys noted; if requests write more while the file is copied, another compaction tries again
)

// erasedName is the name in meta of the time of the first deletion that the file may still show.
const erasedName = "erased"

var errManyWrites = errors.New("too much was written meanwhile")

// noteErased records that the file keeps content which was deleted, until it is compacted.
func (c *change) noteErased() {
	since := c.get(meta.key(erasedName))
	if since == nil {
		since = binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	}
	c.put(meta.key(erasedName), bytes.Clone(since)) // also if it is there: a running compaction has to see that more was deleted
}

// erased returns the time of the first deletion that the file may still show, zero if there is none.
func (s *Store) erased() (since time.Time, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		if b := tx.Bucket(meta.name()).Get([]byte(erasedName)); len(b) == 8 {
			since = time.Unix(0, int64(binary.BigEndian.Uint64(b))) //nolint:gosec // a time
		}
		return nil
	})
	return since, err
}

// startCompactor starts the goroutine that compacts the file. It runs until Close.
func (s *Store) startCompactor() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.compactWhenDue(ctx)
	}()
	s.stopCompactor = func() {
		cancel()
		<-done
	}
}

func (s *Store) compactWhenDue(ctx context.Context) {
	ticker := time.NewTicker(compactCheck)
	defer ticker.Stop()
	for {
		since, err := s.erased()
		if err == nil && !since.IsZero() && time.Since(since) >= compactAfter {
			_ = s.compactOnce(ctx)
		}
		select {
		case <-ticker.C:
		case result := <-s.compacts:
			result <- s.compactOnce(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Compact implements session.Archive. The compaction goes on if ctx ends.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	result := make(chan error, 1)
	select {
	case s.compacts <- result:
	case <-s.written:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result:
		return err
	case <-s.written:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compactOnce compacts the file if anything was deleted. If that fails, the file stays as it is.
func (s *Store) compactOnce(ctx context.Context) error {
	since, err := s.erased()
	if err != nil || since.IsZero() {
		return err
	}
	err = session.Recover(func() error { return s.compact(ctx) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	err = fmt.Errorf("%w: compact %s: %w", session.ErrUnavailable, s.options.Path, err)
	s.options.warn("the store's file was not compacted, so that it still has what was deleted. A full disk is the usual cause. It is tried again each "+
		"hour from half a day after the deletion on, or at once by POST /api/v1/compact", err)
	return err
}

// compact copies the file and replaces it by the copy.
func (s *Store) compact(ctx context.Context) (err error) {
	path := linked(s.options.Path)
	if err := cmp.Or(s.damage.err(), removePart(path)); err != nil {
		return err
	}
	c := &copying{s: s, path: path}
	if c.to, err = bolt.Open(path+partSuffix, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, NoSync: true}); err != nil {
		return err
	}
	c.to.AllocSize = growth
	defer func() { err = errors.Join(err, c.end()) }()
	if _, err := s.takeNoted(true); err != nil {
		return err
	}
	for _, b := range buckets {
		if err := c.copyBucket(ctx, b); err != nil {
			return err
		}
	}
	for range compactRounds {
		keys, err := s.takeNoted(true)
		if err == nil {
			err = c.copyAgain(ctx, keys)
		}
		if err != nil {
			return err
		}
		if len(keys) <= compactFew {
			break
		}
	}
	if err := c.to.Sync(); err != nil { // so that there is little left to be synced while commits wait
		return err
	}
	if stopped := s.onWriter(func() { err = c.finish(ctx) }); stopped != nil {
		return stopped
	}
	return err
}

// partSuffix ends the name of the file that a compaction writes. One that a crash has left is removed by the next start.
const partSuffix = ".compacting"

func removePart(path string) error {
	if err := os.Remove(path + partSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// linked returns the file that a path names, through symbolic links if it is one.
func linked(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// onWriter calls f in the writer's goroutine, between two commits.
func (s *Store) onWriter(f func()) error {
	done := make(chan struct{})
	select {
	case s.between <- func() { defer close(done); f() }:
	case <-s.written:
		return errClosed
	case <-s.damage.stuck:
		return s.damage.err()
	}
	select {
	case <-done:
		return nil
	case <-s.damage.stuck: // f may wait for ever
		return s.damage.err()
	}
}

// takeNoted returns the keys that were written since the last call, and says whether to go on noting them.
func (s *Store) takeNoted(goOn bool) (keys map[string]struct{}, err error) {
	err = s.onWriter(func() { keys = s.swapNoted(goOn) })
	if len(keys) >= compactMost {
		err = cmp.Or(err, errManyWrites)
	}
	return keys, err
}

// swapNoted is takeNoted in the writer's goroutine.
func (s *Store) swapNoted(goOn bool) (keys map[string]struct{}) {
	keys, s.noted = s.noted, nil
	if goOn {
		s.noted = map[string]struct{}{}
	}
	return keys
}

// note remembers what a commit has written while the file is copied. Only the writer calls it.
func (s *Store) note(writes map[string][]byte) {
	if s.noted == nil {
		return
	}
	for key := range writes {
		if len(s.noted) < compactMost {
			s.noted[key] = struct{}{}
		}
	}
}

// copying is a compaction under way.
type copying struct {
	s      *Store
	path   string   // of the file, without symbolic links
	to     *bolt.DB // the copy
	erased bool     // something was deleted meanwhile, which may be in the copy
}

// keyValue is a key in one bucket with its value, nil if there is none.
type keyValue struct{ key, value []byte }

// copyBucket copies all records of one kind, as they are at different times.
func (c *copying) copyBucket(ctx context.Context, b bucket) error {
	for after := []byte(nil); ; {
		var batch []keyValue
		err := c.s.view(func(tx *bolt.Tx) error {
			cursor := tx.Bucket(b.name()).Cursor()
			key, value := cursor.Seek(after)
			if after != nil && bytes.Equal(key, after) {
				key, value = cursor.Next()
			}
			for size := 0; key != nil && size < compactBatch; key, value = cursor.Next() {
				batch = append(batch, keyValue{bytes.Clone(key), append([]byte{}, value...)})
				size += len(key) + len(value)
			}
			return nil
		})
		if err = cmp.Or(err, ctx.Err(), c.put(b, batch)); err != nil || len(batch) == 0 {
			return err
		}
		after = batch[len(batch)-1].key
	}
}

// put writes records into the copy, in the order of their keys.
func (c *copying) put(b bucket, batch []keyValue) error {
	return c.to.Update(func(tx *bolt.Tx) error {
		into, err := tx.CreateBucketIfNotExists(b.name())
		if err != nil {
			return err
		}
		into.FillPercent = 0.9 // almost all come in order
		for _, r := range batch {
			if r.value == nil {
				err = into.Delete(r.key)
			} else {
				err = into.Put(r.key, r.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// copyAgain copies records that were written or deleted while the file was copied.
func (c *copying) copyAgain(ctx context.Context, keys map[string]struct{}) error {
	_, erased := keys[meta.key(erasedName)]
	c.erased = c.erased || erased
	for some := range slices.Chunk(slices.Sorted(maps.Keys(keys)), compactFew) {
		batches := map[bucket][]keyValue{}
		err := c.s.view(func(tx *bolt.Tx) error {
			for _, key := range some {
				kind, name := split(key)
				value := tx.Bucket(kind).Get(name)
				if value != nil {
					value = append([]byte{}, value...)
				}
				batches[bucket(key[0])] = append(batches[bucket(key[0])], keyValue{name, value})
			}
			return nil
		})
		for b, batch := range batches {
			err = cmp.Or(err, c.put(b, batch))
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// finish copies what is left and replaces the file. It runs in the writer's goroutine, so that nothing is committed meanwhile.
func (c *copying) finish(ctx context.Context) error {
	last := c.s.swapNoted(false)
	last[meta.key(sizesName)] = struct{}{} // each commit writes it
	err := c.copyAgain(ctx, last)
	if !c.erased {
		err = cmp.Or(err, c.put(meta, []keyValue{{key: []byte(erasedName)}}))
	}
	if err = cmp.Or(err, c.to.Sync(), c.to.Close()); err != nil {
		return err
	}
	return c.s.replaceFile(c.path)
}

// replaceFile puts the copy in the place of the file. Both are closed for that, because Windows replaces no open file. If it fails, the file
// stays as it is.
func (s *Store) replaceFile(path string) error {
	s.exchange.Lock() // waits for reads
	defer s.exchange.Unlock()
	if err := s.unlessStuck(s.db.Close); err != nil {
		return err
	}
	replaced := os.Rename(path+partSuffix, path)
	if replaced == nil {
		replaced = platform.SyncFolder(filepath.Dir(path)) // before any later commit counts as durable
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType})
	if err != nil {
		err = fmt.Errorf("%w: %s cannot be opened any more, restart: %w", session.ErrUnavailable, path, err)
		s.damage.found.CompareAndSwap(nil, &err) // for Ping
		return err
	}
	db.AllocSize = growth
	s.db = db
	return replaced
}

// end stops the noting of keys and removes the copy, unless it has replaced the file.
func (c *copying) end() error {
	_ = c.to.Close() // a second Close does nothing
	_, err := c.s.takeNoted(false)
	return errors.Join(err, removePart(c.path))
}
