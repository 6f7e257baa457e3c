package boltstore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// sharing returns the file of a store in which thread b shares the content of both messages of thread a.
func sharing(t *testing.T, keys *seal.Keys) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s := start(t, Options{Path: path, Content: true, Keys: keys})
	for _, id := range []session.ThreadID{"a", "b"} {
		b := twoEvents(id, 0)
		for i := range b.Events {
			e := &b.Events[i]
			if e.Digest[0] = byte(i); id == "b" {
				e.Payload, e.Held, b.Thread.Shares = nil, session.EntryID{Thread: "a", Seq: uint64(i) + 1}, []session.ThreadID{"a"}
			}
		}
		must(t, s.Append(t.Context(), b))
	}
	must(t, s.Close())
	return path
}

// TestCheckFindsLostContent: Check reports a thread that names content which the store does not have any more.
func TestCheckFindsLostContent(t *testing.T) {
	keys, err := seal.New("k", map[string][]byte{"k": []byte(strings.Repeat("k", 32))})
	must(t, err)
	put := func(b bucket, key string, value []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket(b.name()).Put([]byte(key[1:]), value) }
	}
	remove := func(b bucket, key string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket(b.name()).Delete([]byte(key[1:])) }
	}
	entry := func(e session.Event) []byte { return codec.Content{Keep: true}.Event("a", e) }
	thread := func(t session.Thread) []byte { return record{thread: t}.encode() }
	garbage := []byte("garbage, and more of it")
	const (
		lost  = ` of thread "b" cannot be shown or condensed again: `
		again = "; the client's next thread logs it again"
	)
	for name, c := range map[string]struct {
		keys   *seal.Keys
		damage func(*bolt.Tx) error
		want   []string
	}{
		"nothing":            {},
		"nothing encrypted":  {keys: keys},
		"holder lost":        {nil, remove(threads, threads.key("a")), []string{`content of 2 of the messages` + lost + `thread "a", which holds it, is missing` + again}},
		"encrypted":          {keys, remove(threads, threads.key("a")), []string{`content of messages` + lost + `thread "a", which holds it, is missing` + again}},
		"holder damaged":     {nil, put(threads, threads.key("a"), garbage), []string{`record "a"`, `content of 2 of the messages` + lost + `thread "a", which holds it, is damaged` + again}},
		"of another session": {nil, put(threads, threads.key("a"), thread(session.Thread{ID: "a", Session: "z"})), []string{`content of 2 of the messages` + lost + `thread "a", which holds it, is of another session`}},
		"entry lost":         {nil, remove(events, events.entry("a", 2)), []string{`content of 1 of the messages` + lost + `entry 2 of thread "a", which holds it, is missing` + again}},
		"entry damaged":      {nil, put(events, events.entry("a", 1), garbage), []string{`record 1 of thread "a"`, `content of 1 of the messages` + lost + `entry 1 of thread "a", which holds it, is damaged`}},
		"entry without it":   {nil, put(events, events.entry("a", 1), entry(session.Event{Kind: session.User})), []string{`content of 1 of the messages` + lost + `entry 1 of thread "a", which holds it, is empty`}},
		"another message":    {nil, put(events, events.entry("a", 1), entry(session.Event{Kind: session.User, Digest: session.Hash{9}, Payload: payload})), []string{`content of 1 of the messages` + lost + `entry 1 of thread "a", which holds it, is of another message`}},
		"thread lost":        {nil, remove(threads, threads.key("b")), nil},
		"of an expired thread": {nil, func(tx *bolt.Tx) error {
			ses := codec.Session(session.Session{ID: "s", Threads: []session.ThreadID{"b"}})
			c := thread(session.Thread{ID: "c", Session: "s", Shares: []session.ThreadID{"b"}})
			return errors.Join(remove(threads, threads.key("a"))(tx), put(sessions, sessions.key("s"), ses)(tx),
				put(unlisted, unlisted.pair("s", "c"), []byte("c"))(tx), put(threads, threads.key("c"), c)(tx))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := sharing(t, c.keys)
			if c.damage != nil {
				db, err := bolt.Open(path, 0o600, nil)
				must(t, err)
				must(t, db.Update(c.damage))
				must(t, db.Close())
			}
			got, err := Check(path)
			if err != nil || len(got.Damages) != len(c.want) {
				t.Fatalf("%q, %v", got.Damages, err)
			}
			for i, want := range c.want {
				if !strings.Contains(got.Damages[i], want) {
					t.Errorf("got  %s\nwant %s", got.Damages[i], want)
				}
			}
		})
	}
}
