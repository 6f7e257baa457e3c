// Package memory keeps records in memory, for tests. Nothing expires, except locks, but Life says when it would.
package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Store is a store.Store in memory.
type Store struct {
	mu      sync.Mutex            // guards the rest
	records map[store.Key]*record // by keys without logs
	entries map[store.EntryKey]string
	locks   map[store.Key]*time.Time // when each ends
	closed  bool
}

type record struct {
	until  time.Time // when it would expire
	fields map[string]string
	logs   map[byte][]string
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{records: map[store.Key]*record{}, entries: map[store.EntryKey]string{}, locks: map[store.Key]*time.Time{}}
}

// locked calls f with the store locked.
func (s *Store) locked(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return session.ErrUnavailable
	}
	return f()
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, q store.Query) (found store.Found, err error) {
	return found, s.locked(ctx, func() error {
		for _, sel := range q.Records {
			found.Records = append(found.Records, s.records[plain(sel.Key)].selected(sel))
		}
		for _, key := range q.Entries {
			found.Entries = append(found.Entries, s.entries[key])
		}
		return nil
	})
}

// plain returns a key by which a record is found.
func plain(key store.Key) store.Key {
	key.Logs = ""
	return key
}

func (r *record) selected(sel store.Select) (out store.Record) {
	if r == nil {
		return out
	}
	out.Fields = map[string]string{}
	for _, name := range sel.Fields {
		if value, ok := r.fields[name]; ok {
			out.Fields[name] = value
		}
	}
	if sel.Fields == nil {
		maps.Copy(out.Fields, r.fields)
	}
	log := r.logs[sel.Log]
	out.Newest = slices.Clone(log[max(0, len(log)-sel.Newest):])
	return out
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, c store.Commit) (result store.Result, err error) {
	result.Failed = -1
	return result, s.locked(ctx, func() error {
		for i := range c.Parts {
			if !c.Parts[i].Holds(target{s, plain(c.Parts[i].Key)}) {
				result.Failed = i
				return nil
			}
		}
		result.Applied = true
		first := target{s, plain(c.Parts[0].Key)}
		for i := range c.Parts {
			if c.Parts[i].Unlock {
				delete(s.locks, plain(c.Parts[i].Key))
			}
			isNew := s.records[plain(c.Parts[i].Key)] == nil
			sums, end := c.Parts[i].Apply(target{s, plain(c.Parts[i].Key)})
			if r := s.records[plain(c.Parts[i].Key)]; r != nil && (isNew || c.Parts[i].Renew != store.Never) {
				r.until = time.Now().Add(cmp.Or(c.Parts[i].Keep, TTL))
			}
			result.Sums = append(result.Sums, sums)
			if i == 0 {
				result.End = end
			}
		}
		s.index(&c, first)
		result.Fields = s.records[first.key].selected(store.Select{Fields: c.Return}).Fields
		return nil
	})
}

func (s *Store) index(c *store.Commit, first target) {
	recent := false
	for _, e := range c.Entries {
		if _, known := s.entries[e.Key]; !known || !e.First {
			s.entries[e.Key] = e.Value
		}
		recent = recent || e.Recent
	}
	drop := c.Drop
	if recent {
		kept, excess := c.KeepRecent(first.Get(store.Recent))
		first.Set(store.Recent, kept)
		drop = slices.Concat(drop, excess)
	}
	for _, key := range drop {
		if strings.HasPrefix(s.entries[key], c.Owner) {
			delete(s.entries, key)
		}
	}
}

// target is a record that a commit changes, which may not exist.
type target struct {
	s   *Store
	key store.Key
}

func (t target) Get(field string) string {
	if r := t.s.records[t.key]; r != nil {
		return r.fields[field]
	}
	return ""
}

func (t target) record() *record {
	r := t.s.records[t.key]
	if r == nil {
		r = &record{fields: map[string]string{}, logs: map[byte][]string{}}
		t.s.records[t.key] = r
	}
	return r
}

func (t target) Set(field, value string) {
	if value == "" {
		if t.Get(field) != "" {
			delete(t.record().fields, field)
		}
		return
	}
	t.record().fields[field] = value
}

func (t target) Append(log byte, _ uint64, entry string) {
	r := t.record()
	r.logs[log] = append(r.logs[log], entry)
}

func (t target) Trim(log byte, keep int) {
	r := t.record()
	r.logs[log] = r.logs[log][max(0, len(r.logs[log])-keep):]
}

func (t target) Clear() { delete(t.s.records, t.key) }

// Log implements store.Store.
func (s *Store) Log(ctx context.Context, q store.LogQuery) (page store.Page, err error) {
	return page, s.locked(ctx, func() error {
		r := s.records[plain(q.Key)]
		if r == nil {
			return session.ErrNotFound
		}
		log := r.logs[q.Log]
		end := q.EndOf(r.fields[store.End(q.Log)])
		page = q.Walk(end-uint64(len(log)), end, func(n uint64) (string, bool) { return log[n-1-(end-uint64(len(log)))], true })
		return nil
	})
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, kind byte, cursor string) (found store.Scanned, err error) {
	const most = 100
	after, ok := strings.CutPrefix(cursor, "after ")
	if !ok && cursor != "" {
		return found, session.ErrCursor
	}
	return found, s.locked(ctx, func() error {
		for key := range s.records {
			if key.Kind == kind && (key.Group > after || cursor == "") {
				found.Keys = append(found.Keys, key)
			}
		}
		slices.SortFunc(found.Keys, func(a, b store.Key) int { return strings.Compare(a.Group, b.Group) })
		more := len(found.Keys) > most
		found.Keys = found.Keys[:min(most, len(found.Keys))]
		for _, key := range found.Keys {
			found.Cursors = append(found.Cursors, "after "+key.Group)
		}
		if more {
			found.Next = found.Cursors[most-1]
		}
		return nil
	})
}

// Lock implements store.Store.
func (s *Store) Lock(ctx context.Context, key store.Key, ttl time.Duration) (session.Lease, error) {
	mine, key := new(time.Time), plain(key)
	hold := func(ctx context.Context) error {
		return s.locked(ctx, func() error {
			if held := s.locks[key]; held != nil && held != mine && time.Now().Before(*held) {
				return session.ErrLocked
			}
			*mine = time.Now().Add(ttl)
			s.locks[key] = mine
			return nil
		})
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	return session.Lease{Renew: hold, Release: func() {
		_ = s.locked(context.Background(), func() error {
			if s.locks[key] == mine {
				delete(s.locks, key)
			}
			return nil
		})
	}}, nil
}

// Late implements store.Store.
func (s *Store) Late() time.Duration { return 0 }

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error { return s.locked(ctx, func() error { return nil }) }

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
