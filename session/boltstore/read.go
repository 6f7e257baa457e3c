package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

func (s *Store) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, more ...session.Hash) (session.Found, error) {
	return query(ctx, s, func(r *reader) (found session.Found, err error) {
		found.Places, err = r.places(places, hashes)
		if err == nil && len(more) > 0 {
			found.Traced, err = r.places(traces, more)
		}
		if err != nil || hint == "" {
			return found, err
		}
		if stored := r.get(threads.key(string(hint))); stored != nil {
			thread, err := parseThread(stored)
			found.Hinted = &thread
			return found, err
		}
		return found, nil
	})
}

func (s *Store) Trace(ctx context.Context, hashes []session.Hash) ([]session.Place, error) {
	return query(ctx, s, func(r *reader) ([]session.Place, error) { return r.places(traces, hashes) })
}

// query is like read, for a function that returns a result.
func query[T any](ctx context.Context, s *Store, f func(*reader) (T, error)) (result T, err error) {
	err = s.read(ctx, func(r *reader) (err error) {
		result, err = f(r)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return result, nil
}

func (r *reader) places(b bucket, hashes []session.Hash) (_ []session.Place, err error) {
	found, last := make([]session.Place, len(hashes)), session.Place{}
	for i, h := range hashes {
		if stored := r.get(b.hash(h)); stored != nil {
			if last, err = codec.ParsePlace(stored, last); err != nil {
				return nil, err
			}
			found[i] = last
		}
	}
	return found, nil
}

func (s *Store) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	return one(ctx, s, threads.key(string(id)), parseThread)
}

func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	return one(ctx, s, sessions.key(string(id)), codec.ParseSession)
}

// one reads and parses one record, or returns ErrNotFound.
func one[T any](ctx context.Context, s *Store, key string, parse func([]byte) (T, error)) (T, error) {
	return query(ctx, s, func(r *reader) (none T, err error) {
		if stored := r.get(key); stored != nil {
			return parse(stored)
		}
		return none, session.ErrNotFound
	})
}

func (s *Store) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	return query(ctx, s, func(r *reader) (string, error) {
		stored := r.get(summaries.entry(id.Thread, id.Seq))
		if stored == nil || id.Seq == 0 {
			return "", session.ErrNotFound
		}
		rec, err := r.thread(id.Thread)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return "", err
		}
		return s.content.ParseSummary(stored, rec.list, id)
	})
}

// Events implements session.Store. It returns ErrNotFound if the thread does not exist. It reads each entry in a separate transaction,
// because a page of large events takes long to decode and no other call may wait for that. A damaged entry does not prevent the others
// from being read.
func (s *Store) Events(ctx context.Context, id session.ThreadID, at uint64, limit int) ([]session.Event, error) {
	last, err := one(ctx, s, threads.key(string(id)), func(b []byte) (uint64, error) {
		rec, err := parseRecord(b)
		return rec.thread.Seq, err
	})
	if err != nil {
		return nil, err
	}
	seq, step, page := max(at, 1), uint64(1), codec.Page{Limit: max(limit, -math.MaxInt)}
	if limit < 0 {
		seq, step = min(at, last), math.MaxUint64 // minus one
	}
	for ; 1 <= seq && seq <= last && !page.Full(); seq += step {
		entry, err := one(ctx, s, events.entry(id, seq), func(b []byte) ([]session.Event, error) {
			entry, _ := s.content.ParseEvents(id, b, seq)
			return entry, nil
		})
		switch {
		case err == nil:
			page.Add(entry)
		case !errors.Is(err, session.ErrNotFound):
			return nil, err
		}
	}
	return page.Events(), nil
}

// record is a thread as it is stored. Its condensations stay encoded, because an append does not need them.
type record struct {
	written time.Time
	thread  session.Thread
	list    []byte // encoded condensations and replacements
}

func (r record) encode() []byte {
	thread := codec.Thread(r.thread)
	b := binary.BigEndian.AppendUint64(nil, uint64(r.written.UnixNano()))
	b = binary.AppendUvarint(b, uint64(len(thread)))
	return slices.Concat(b, thread, r.list)
}

// parseRecord decodes a record, whose list aliases b.
func parseRecord(b []byte) (record, error) {
	if len(b) < 9 {
		return record{}, codec.ErrCorrupt
	}
	r := record{written: time.Unix(0, int64(binary.BigEndian.Uint64(b)))} //nolint:gosec // a time
	n, size := binary.Uvarint(b[8:])
	if size <= 0 || n > uint64(len(b)-8-size) { //nolint:gosec // a length
		return r, codec.ErrCorrupt
	}
	body := b[8+size:]
	var err error
	r.thread, err = codec.ParseThread(body[:n])
	r.list = body[n:]
	return r, err
}

// thread reads a thread's record, or returns ErrNotFound.
func (r *reader) thread(id session.ThreadID) (record, error) {
	stored := r.get(threads.key(string(id)))
	if stored == nil {
		return record{}, session.ErrNotFound
	}
	rec, err := parseRecord(stored)
	if err != nil {
		return rec, fmt.Errorf("thread record: %w", err)
	}
	return rec, nil
}

// parseThread decodes a record including its list.
func parseThread(b []byte) (session.Thread, error) {
	r, err := parseRecord(b)
	if err == nil {
		err = codec.SetList(&r.thread, r.list)
	}
	if err != nil {
		return session.Thread{}, fmt.Errorf("thread record: %w", err)
	}
	return r.thread, nil
}
