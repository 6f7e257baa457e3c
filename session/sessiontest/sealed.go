package sessiontest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Keys returns encryption keys with the given IDs. The first one is active. Equal IDs give equal keys.
func Keys(t testing.TB, ids ...string) *seal.Keys {
	t.Helper()
	all := map[string][]byte{}
	for _, id := range ids {
		all[id] = bytes.Repeat([]byte(id), 32)[:32]
	}
	return must(seal.New(ids[0], all))(t)
}

// Sealed tests the encryption of content. open opens a store over the same state each time, with the given keys or none; dump
// returns all bytes of that state.
func Sealed(t *testing.T, open func(t *testing.T, keys *seal.Keys) session.Backend, dump func(t *testing.T) []byte) {
	one, two, both := Keys(t, "one"), Keys(t, "two"), Keys(t, "two", "one")
	for _, c := range []struct {
		name       string
		write      *seal.Keys
		readable   []*seal.Keys
		unreadable []*seal.Keys
	}{
		{name: "clear", readable: []*seal.Keys{one}}, // written before there was a key
		{name: "sealed", write: one, readable: []*seal.Keys{one, both}, unreadable: []*seal.Keys{nil, two}},
		{name: "renewed", write: both, readable: []*seal.Keys{two, both}, unreadable: []*seal.Keys{nil, one}},
	} {
		id := writeMarks(t, open(t, c.write), session.ThreadID(c.name))
		for _, kind := range []string{"payload", "summary"} {
			if inClear := bytes.Contains(dump(t), []byte(mark(kind, id.Thread))); inClear != (c.write == nil) {
				t.Fatalf("%s: the dump shows the %s: %v", c.name, kind, inClear)
			}
		}
		for _, keys := range c.unreadable {
			wantUnreadable(t, open(t, keys), id)
		}
		for _, keys := range c.readable {
			wantMarks(t, open(t, keys), id)
		}
	}
}

// mark returns a text that only one record of one thread contains.
func mark(kind string, id session.ThreadID) string { return fmt.Sprintf("MARK-%s-of-%s-QZX", kind, id) }

// writeMarks writes a thread with one message and one summary, and closes the store.
func writeMarks(t *testing.T, store session.Backend, id session.ThreadID) session.CondensationID {
	t.Helper()
	b, c := batch(id, 0, 1), condensation(1)
	b.Events[0].Payload, c.Summary = []byte(mark("payload", id)), mark("summary", id)
	ok(t, store.Append(ctx(t), b))
	c = must(store.Condense(ctx(t), id, c))(t)
	ok(t, store.Close())
	return c.ID
}

func wantMarks(t *testing.T, store session.Backend, id session.CondensationID) {
	t.Helper()
	equal(t, must(store.Summary(ctx(t), id))(t), mark("summary", id.Thread))
	equal(t, string(events(t, store, id.Thread)[0].Payload), mark("payload", id.Thread))
	ok(t, store.Close())
}

func wantUnreadable(t *testing.T, store session.Backend, id session.CondensationID) {
	t.Helper()
	all := events(t, store, id.Thread)
	summary, err := store.Summary(ctx(t), id)
	is(t, err, session.ErrUnreadable)
	var unknown *seal.KeyError
	if !errors.As(err, &unknown) || summary != "" || len(all) != 2 || all[0].Payload != nil || all[0].Pos != 1 {
		t.Fatalf("unknown key: %v, %q, %+v", err, summary, all)
	}
	ok(t, store.Close())
}
