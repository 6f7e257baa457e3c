package boltstore

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// read calls found for each key that has a value; it must not keep the value.
func (s *Store) read(ctx context.Context, keys []string, found func(i int, value []byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	queued, tx, err := s.snapshot(keys)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends a read; cannot fail
	return s.guard(func() error {
		for i, key := range keys {
			value, ok := queued[i]
			if !ok {
				bucket, name := split(key)
				value = tx.Bucket(bucket).Get(name)
			}
			if value == nil {
				continue
			}
			if err := found(i, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// snapshot gives what is pending for keys, by index, and the disk as it was at the same moment. The transaction must
// begin under the lock: what the writer has committed meanwhile is no longer pending.
func (s *Store) snapshot(keys []string) (map[int][]byte, *bolt.Tx, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending.closed {
		return nil, nil, errClosed
	}
	var queued map[int][]byte
	if len(s.pending.queued)+len(s.pending.committing) > 0 {
		queued = make(map[int][]byte)
		for i, key := range keys {
			if value, ok := s.pending.get(key); ok {
				queued[i] = value
			}
		}
	}
	tx, err := s.begin(false)
	return queued, tx, err
}

// Find implements session.Store. It reads memory, or pages of the file.
func (s *Store) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, more ...session.Hash) (session.Found, error) {
	found := session.Found{Places: make([]session.Place, len(hashes))}
	keys := hashKeys(places, hashes, len(more)+1)
	if len(more) > 0 {
		found.Traced = make([]session.Place, len(more))
		keys = append(keys, hashKeys(traces, more, 0)...)
	}
	if hint != "" {
		keys = append(keys, threads.key(string(hint)))
	}
	err := s.read(ctx, keys, func(i int, value []byte) (err error) {
		if i < len(hashes) {
			found.Places[i], err = codec.ParsePlace(value)
			return err
		}
		if i -= len(hashes); i < len(more) {
			found.Traced[i], err = codec.ParsePlace(value)
			return err
		}
		thread, err := parseThread(value)
		found.Hinted = &thread
		return err
	})
	if err != nil {
		return session.Found{}, err
	}
	return found, nil
}

func (s *Store) Trace(ctx context.Context, hashes []session.Hash) ([]session.Place, error) {
	found := make([]session.Place, len(hashes))
	err := s.read(ctx, hashKeys(traces, hashes, 0), func(i int, value []byte) (err error) {
		found[i], err = codec.ParsePlace(value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func hashKeys(b bucket, hashes []session.Hash, more int) []string {
	keys := make([]string, len(hashes), len(hashes)+more)
	for i, h := range hashes {
		keys[i] = b.hash(h)
	}
	return keys
}

func (s *Store) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	return one(ctx, s, threads.key(string(id)), parseThread)
}

func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	return one(ctx, s, sessions.key(string(id)), codec.ParseSession)
}

func (s *Store) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	var text []byte
	var thread session.Thread
	keys := []string{summaries.entry(id.Thread, id.Seq), threads.key(string(id.Thread))}
	err := s.read(ctx, keys, func(i int, value []byte) (err error) {
		if i == 0 {
			text = bytes.Clone(value)
			return nil
		}
		thread, err = parseThread(value)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case text == nil, id.Seq == 0:
		return "", session.ErrNotFound
	}
	return s.content.ParseText(text, codec.Find(thread.Listed(), id))
}

// one reads one record, or gives ErrNotFound.
func one[T any](ctx context.Context, s *Store, key string, parse func([]byte) (T, error)) (T, error) {
	var record T
	missing := session.ErrNotFound
	err := s.read(ctx, []string{key}, func(_ int, value []byte) (err error) {
		missing = nil
		record, err = parse(value)
		return err
	})
	if err == nil {
		err = missing
	}
	return record, err
}

// Events implements session.Store. ErrNotFound if the thread is unknown.
func (s *Store) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	rec, err := one(ctx, s, threads.key(string(id)), func(b []byte) (record, error) {
		r, err := parseRecord(b)
		r.list = nil // aliases the page
		return r, err
	})
	if err != nil {
		return nil, err
	}
	from = max(from, 1)
	if limit <= 0 || from > rec.thread.Seq {
		return nil, nil
	}
	keys := make([]string, min(uint64(limit), rec.thread.Seq-from+1))
	for i := range keys {
		keys[i] = events.entry(id, from+uint64(i))
	}
	all := make([]session.Event, 0, len(keys))
	err = s.read(ctx, keys, func(i int, value []byte) error {
		e, err := s.content.ParseEvent(id, value, from+uint64(i)) //nolint:gosec // an index
		all = append(all, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
