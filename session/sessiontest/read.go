package sessiontest

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) EventsPaging(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 10)))
	all := events(t, store, "t")
	for _, page := range []struct {
		from      uint64
		limit     int
		low, high int
	}{
		{0, 3, 0, 3}, {1, 3, 0, 3}, {4, 3, 3, 6}, {9, 3, 8, 10}, {10, 1, 9, 10}, {11, 5, 0, 0}, {1, 0, 0, 0}, {1, -1, 0, 0},
		{1, math.MaxInt, 0, 10}, {10, math.MaxInt, 9, 10}, {math.MaxUint64, 1, 0, 0}, {math.MaxUint64, math.MaxInt, 0, 0},
	} {
		t.Run(fmt.Sprint(page), func(t *testing.T) {
			got, err := store.Events(ctx(t), "t", page.from, page.limit)
			ok(t, err)
			equal(t, append([]session.Event{}, got...), append([]session.Event{}, all[page.low:page.high]...))
		})
	}
}

func (s suite) ReadNotFound(t *testing.T) {
	store := s.fresh(t)
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
	is(t, second(store.Session(ctx(t), "s")), session.ErrNotFound)
	is(t, second(store.Summary(ctx(t), session.CondensationID{Thread: "t", Seq: 1})), session.ErrNotFound)
	is(t, second(store.Events(ctx(t), "t", 1, 1)), session.ErrNotFound)
}

// ReadCancelled: a caller who has left gets his own error back, and has done nothing.
func (s suite) ReadCancelled(t *testing.T) {
	store := s.fresh(t)
	gone, cancel := context.WithCancel(ctx(t))
	cancel()
	calls := map[string]func() error{
		"Secret":   func() error { _, err := store.Secret(gone, session.Secret("x")); return err },
		"Find":     func() error { _, err := store.Find(gone, []session.Hash{{}}, "t"); return err },
		"Thread":   func() error { _, err := store.Thread(gone, "t"); return err },
		"Append":   func() error { return store.Append(gone, batch("t", 0, 1)) },
		"Condense": func() error { _, err := store.Condense(gone, "t", condensation(8)); return err },
		"Summary":  func() error { _, err := store.Summary(gone, session.CondensationID{Thread: "t"}); return err },
		"Events":   func() error { _, err := store.Events(gone, "t", 1, 1); return err },
		"Trace":    func() error { _, err := store.Trace(gone, []session.Hash{{}}); return err },
		"Mark":     func() error { return store.Mark(gone, []session.Hash{{}}, place("t", 1)) },
		"Session":  func() error { _, err := store.Session(gone, "s"); return err },
		"Lock":     func() error { _, err := store.Lock(gone, "t", time.Second); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { is(t, call(), context.Canceled) })
	}
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
}

// ReadOwned: what goes in or out is the caller's to change afterwards.
func (s suite) ReadOwned(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 1)
	ok(t, store.Append(ctx(t), b))
	clear(b.Events[0].Payload)
	first := events(t, store, "t")
	equal(t, first, logged(batch("t", 0, 1), 1))
	clear(first[0].Payload)
	equal(t, events(t, store, "t"), logged(batch("t", 0, 1), 1))
	proposed := session.Secret("proposed")
	secret, err := store.Secret(ctx(t), proposed)
	ok(t, err)
	clear(secret)
	equal(t, string(must(store.Secret(ctx(t), session.Secret("other")))(t)), "proposed")
}

func (s suite) SecretFirst(t *testing.T) {
	store, other := s.pair(t)
	first, err := store.Secret(ctx(t), session.Secret("\x00one\xff"))
	ok(t, err)
	equal(t, string(first), "\x00one\xff")
	for _, st := range []session.Store{store, other, store} {
		equal(t, must(st.Secret(ctx(t), session.Secret("two")))(t), first)
	}
}

// SecretNotEmpty: a chain keyed with nothing could be forged by anyone.
func (s suite) SecretNotEmpty(t *testing.T) {
	if _, err := s.fresh(t).Secret(ctx(t), nil); err == nil {
		t.Error("an empty secret was accepted")
	}
}
