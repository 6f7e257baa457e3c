package sessiontest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Keys makes encryption keys with these ids, the first of which is the active one. The same id is the same key.
func Keys(t testing.TB, ids ...string) *seal.Keys {
	t.Helper()
	all := map[string][]byte{}
	for _, id := range ids {
		all[id] = bytes.Repeat([]byte(id), 32)[:32]
	}
	keys, err := seal.New(ids[0], all)
	ok(t, err)
	return keys
}

// Sealed checks what a store keeps that encrypts its content. open opens one over the same state, under other keys than
// before, or none; dump gives all bytes of that state.
func Sealed(t *testing.T, open func(t *testing.T, keys *seal.Keys) session.Store, dump func(t *testing.T) []byte) {
	s := sealing{t, open, dump}
	s.clear()
	s.sealed()
	s.rotated()
	s.lost()
}

type sealing struct {
	t    *testing.T
	open func(t *testing.T, keys *seal.Keys) session.Store
	dump func(t *testing.T) []byte
}

// mark is a word that only one record of one stage holds.
func mark(kind string, id session.ThreadID) string { return fmt.Sprintf("MARK-%s-of-%s-QZX", kind, id) }

// write puts a thread with one message and one summary into a store, and closes it.
func (s sealing) write(keys *seal.Keys, id session.ThreadID) session.CondensationID {
	s.t.Helper()
	store := s.open(s.t, keys)
	b := batch(id, 0, 1)
	b.Events[0].Payload = []byte(mark("payload", id))
	ok(s.t, store.Append(ctx(s.t), b))
	c := condensation(1)
	c.Summary = mark("summary", id)
	c, err := store.Condense(ctx(s.t), id, c)
	ok(s.t, err)
	ok(s.t, store.Close())
	return c.ID
}

// seen reports whether a dump holds the marks of a thread.
func (s sealing) seen(id session.ThreadID) (payload, summary bool) {
	s.t.Helper()
	all := s.dump(s.t)
	return bytes.Contains(all, []byte(mark("payload", id))), bytes.Contains(all, []byte(mark("summary", id)))
}

// read wants a thread's content to be there, or to be unreadable.
func (s sealing) read(keys *seal.Keys, id session.CondensationID, readable bool) {
	s.t.Helper()
	store := s.open(s.t, keys)
	defer func() { ok(s.t, store.Close()) }()
	all := events(s.t, store, id.Thread)
	summary, err := store.Summary(ctx(s.t), id)
	if readable {
		ok(s.t, err)
		equal(s.t, summary, mark("summary", id.Thread))
		equal(s.t, string(all[0].Payload), mark("payload", id.Thread))
		return
	}
	is(s.t, err, session.ErrUnreadable)
	var unknown *seal.KeyError
	if !errors.As(err, &unknown) || summary != "" || len(all) != 2 || all[0].Payload != nil || all[0].Pos != 1 {
		s.t.Fatalf("an unknown key: %v, %q, %+v", err, summary, all)
	}
}

// clear is what was written before there was a key.
func (s sealing) clear() {
	s.t.Helper()
	id := s.write(nil, "clear")
	if payload, summary := s.seen("clear"); !payload || !summary {
		s.t.Fatal("the dump does not show what is kept in clear: it would not show anything")
	}
	s.read(Keys(s.t, "one"), id, true)
}

func (s sealing) sealed() {
	s.t.Helper()
	id := s.write(Keys(s.t, "one"), "sealed")
	if payload, summary := s.seen("sealed"); payload || summary {
		s.t.Fatalf("in clear: payload %v, summary %v", payload, summary)
	}
	s.read(Keys(s.t, "one"), id, true)
}

func (s sealing) rotated() {
	s.t.Helper()
	old, renewed := s.write(Keys(s.t, "one"), "old"), s.write(Keys(s.t, "two", "one"), "renewed")
	s.read(Keys(s.t, "two", "one"), old, true)
	s.read(Keys(s.t, "two"), renewed, true)
	s.read(Keys(s.t, "one"), renewed, false)
}

// lost is content whose key was taken away.
func (s sealing) lost() {
	s.t.Helper()
	id := s.write(Keys(s.t, "one"), "lost")
	s.read(nil, id, false)
	s.read(Keys(s.t, "two"), id, false)
	s.read(Keys(s.t, "one"), id, true)
}
