package boltstore

import (
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func start(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "store.db")
	}
	s, err := Open(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// payload has a typical size.
var payload = []byte(`{"role":"assistant","content":"` + string(make([]byte, 900)) + `"}`)

// chain returns the hash at a position, which is different for each thread and position.
func chain(id session.ThreadID, pos int) (h session.Hash) {
	h[0], h[1], h[2] = byte(pos), byte(pos>>8), byte(pos>>16)
	copy(h[3:], id)
	return h
}

func twoEvents(id session.ThreadID, at int) session.Batch {
	b := session.Batch{Thread: session.Thread{ID: id, Session: "s", Len: at + 2}, At: at, Traces: session.Traces{Lasting: []session.Hash{chain(id, -1)}}}
	for pos := at + 1; pos <= at+2; pos++ {
		h := chain(id, pos)
		b.Events = append(b.Events, session.Event{Pos: pos, Kind: session.User, Chain: h, Payload: payload})
		b.Places = append(b.Places, session.IndexEntry{Hash: h, Place: session.Place{Thread: id, Session: "s", Pos: pos, Encoding: "o200k_base"}})
	}
	return b
}
