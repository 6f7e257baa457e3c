package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Read implements store.Store. It sends one pipeline, in a Cluster one to each node involved, concurrently.
func (s *Store) Read(ctx context.Context, q store.Query) (found store.Found, err error) {
	var entries func() []any
	records := make([]func(*store.Record) error, len(q.Records))
	err = s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		entries = s.values(ctx, pipe, s.keys.entries(q.Entries))
		for i := range q.Records {
			records[i] = s.sel(ctx, pipe, &q.Records[i])
		}
	})
	if err != nil {
		return found, err
	}
	if found.Entries, err = texts(entries(), len(q.Entries)); err != nil {
		return found, err
	}
	found.Records = make([]store.Record, len(q.Records))
	for i, parse := range records {
		if err := parse(&found.Records[i]); err != nil {
			return store.Found{}, err
		}
	}
	return found, nil
}

// sel adds commands to a pipeline that read what is selected of a record, and returns a function that parses the replies.
func (s *Store) sel(ctx context.Context, pipe redis.Pipeliner, sel *store.Select) func(*store.Record) error {
	key := s.keys.record(sel.Key)
	var some *redis.SliceCmd
	var all *redis.MapStringStringCmd
	var newest *redis.StringSliceCmd
	switch {
	case sel.Fields == nil:
		all = pipe.HGetAll(ctx, key)
	case len(sel.Fields) > 0:
		some = pipe.HMGet(ctx, key, sel.Fields...)
	}
	if sel.Newest > 0 {
		newest = pipe.LRange(ctx, s.keys.log(sel.Key, sel.Log), int64(-sel.Newest), -1)
	}
	return func(r *store.Record) error {
		if newest != nil {
			r.Newest = newest.Val()
		}
		if all != nil {
			r.Fields = all.Val()
			delete(r.Fields, tokenField)
			return nil
		}
		r.Fields = map[string]string{}
		if some == nil {
			return nil
		}
		values, err := texts(some.Val(), len(sel.Fields))
		for i, name := range sel.Fields {
			if err == nil && values[i] != "" {
				r.Fields[name] = values[i]
			}
		}
		return err
	}
}

// values adds commands to a pipeline that read string keys, and returns a function that returns the values after the
// pipeline has run. A single command reads all keys, which costs half as much as one for each. A Cluster, where the slots
// differ, needs one for each.
func (s *Store) values(ctx context.Context, pipe redis.Pipeliner, keys []string) func() []any {
	if len(keys) == 0 {
		return func() []any { return nil }
	}
	if !s.options.Cluster {
		return pipe.MGet(ctx, keys...).Val
	}
	each := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		each[i] = pipe.Get(ctx, key)
	}
	return func() []any {
		got := make([]any, len(each))
		for i, c := range each {
			if c.Err() == nil {
				got[i] = c.Val()
			}
		}
		return got
	}
}

// Log implements store.Store.
func (s *Store) Log(ctx context.Context, q store.LogQuery) (page store.Page, err error) {
	read := script{logScript, []string{s.keys.record(q.Key), s.keys.log(q.Key, q.Log)}, []any{store.End(q.Log), q.At, q.Limit, q.Bytes}}
	got, err := result(ctx, s.read, func(ctx context.Context) ([]any, error) { return read.run(ctx, s).Slice() })
	if err != nil {
		return page, err
	}
	if len(got) < 2 {
		return page, checkLen(got, 2)
	}
	end, _ := got[0].(int64)
	first, ok := got[1].(int64)
	if !ok || end < 0 || first < 0 {
		return page, checkLen(got[:1], 2)
	}
	page.End, page.First = uint64(end), uint64(first)
	for _, entry := range got[2:] {
		page.Entries = append(page.Entries, textOf(entry))
	}
	return page, nil
}

// Lock implements store.Store. If the release does not reach the server, the lock expires.
func (s *Store) Lock(ctx context.Context, key store.Key, ttl time.Duration) (session.Lease, error) {
	keys, own := []string{s.keys.lock(key)}, rand.Text()
	hold := func(ctx context.Context) error {
		held, err := result(ctx, s.write, func(ctx context.Context) (bool, error) {
			return script{lockScript, keys, []any{own, ttl.Milliseconds()}}.run(ctx, s).Bool()
		})
		if err == nil && !held {
			return session.ErrLocked
		}
		return err
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	return session.Lease{Renew: hold, Release: func() {
		w := writing{s, &store.Commit{Owner: own}}
		_, _ = w.run(context.Background(), w.script(nil, nil, keys, "", 0)) // like an index entry with this value
	}}, nil
}

const scanCount = 500 // approximate number of keys that one SCAN looks at

// position says how far the records were read: the node, the cursor of SCAN on that node, and the last key that was read of those
// that SCAN returns for this cursor. There is no index, so listing scans all keys.
type position struct {
	node   string
	cursor uint64
	after  string
}

func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s\n%d\n%s", p.node, p.cursor, p.after))
}

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(plain), "\n", 3)
	if err != nil || len(parts) != 3 {
		return p, session.ErrCursor
	}
	p.node, p.after = parts[0], parts[2]
	p.cursor, err = strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return p, session.ErrCursor
	}
	return p, nil
}

// maxScans is how many SCANs one page takes if they find nothing.
const maxScans = 20

// Scan implements store.Store. It lists records in no particular order. Records that exist throughout the listing are listed, but some may be
// listed twice if Redis resizes its tables or a Cluster moves slots in the meantime. A page may be empty without being the last.
func (s *Store) Scan(ctx context.Context, kind byte, cursor string) (found store.Scanned, err error) {
	at, err := parsePosition(cursor)
	if err != nil {
		return found, err
	}
	masters, err := s.masters(ctx)
	if err != nil {
		return found, err
	}
	for range maxScans {
		n := slices.IndexFunc(masters, func(n nodes.Node) bool { return n.Addr >= at.node })
		if n < 0 {
			found.Next = ""
			return found, nil
		}
		if masters[n].Addr != at.node { // the first page, or the node is gone and this is the next
			at = position{node: masters[n].Addr}
		}
		keys, next, err := s.scan(ctx, masters[n].Client, kind, at)
		if err != nil {
			return found, err
		}
		for _, key := range keys {
			at.after = key
			found.Keys = append(found.Keys, store.Key{Kind: kind, Group: s.keys.group(key, kind)})
			found.Cursors = append(found.Cursors, at.String())
		}
		at = position{node: at.node, cursor: next}
		if next == 0 {
			if n+1 == len(masters) {
				found.Next = ""
				return found, nil
			}
			at = position{node: masters[n+1].Addr}
		}
		found.Next = at.String()
		if len(found.Keys) > 0 {
			break
		}
	}
	return found, nil
}

func (s *Store) masters(ctx context.Context) (masters []nodes.Node, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		masters, err = nodes.Masters(ctx, s.client)
		return err
	})
	if err == nil && len(masters) == 0 {
		err = fmt.Errorf("%w: the cluster names no master", session.ErrUnavailable)
	}
	return masters, err
}

// scan returns the keys of records that SCAN returns for a cursor, sorted, after the given position.
func (s *Store) scan(ctx context.Context, c redis.Cmdable, kind byte, at position) (keys []string, next uint64, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		keys, next, err = c.Scan(ctx, at.cursor, s.keys.records(kind), scanCount).Result()
		return err
	})
	slices.Sort(keys)
	keys = slices.Compact(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key <= at.after })
	return keys, next, err
}

var _ session.Buckets = (*Store)(nil)

// Draw implements session.Buckets with the clocks of the replicas. If a connection breaks, n may be taken more than once.
func (s *Store) Draw(ctx context.Context, bucket string, n, perMinute int, owed bool) (time.Duration, error) {
	exec := func(ctx context.Context, commands func(context.Context) error) error {
		return s.writeWithin(ctx, s.options.Timeout, commands)
	}
	ms, err := result(ctx, exec, func(ctx context.Context) (int64, error) {
		draw := script{drawScript, []string{s.keys.bucket(bucket)}, []any{n, perMinute, owed, time.Now().UnixMilli()}}
		return draw.run(ctx, s).Int64()
	})
	return time.Duration(ms) * time.Millisecond, err
}
