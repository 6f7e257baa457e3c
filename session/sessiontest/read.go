package sessiontest

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) EventsPaging(t *testing.T) {
	store := s.begun(t, 10)
	all := events(t, store, "t")
	for _, page := range []struct {
		from      uint64
		limit     int
		low, high int
	}{
		{0, 3, 0, 3}, {1, 3, 0, 3}, {4, 3, 3, 6}, {9, 3, 8, 10}, {10, 1, 9, 10}, {11, 5, 0, 0}, {1, 0, 0, 0}, {1, -1, 0, 0},
		{1, math.MaxInt, 0, 10}, {10, math.MaxInt, 9, 10}, {math.MaxUint64, 1, 0, 0}, {math.MaxUint64, math.MaxInt, 0, 0},
	} {
		t.Logf("page %+v", page)
		got := must(store.Events(ctx(t), "t", page.from, page.limit))(t)
		equal(t, append([]session.Event{}, got...), append([]session.Event{}, all[page.low:page.high]...))
	}
}

// calls returns calls of a store's methods, by name, that concern a thread or its session.
func calls(ctx context.Context, store session.Backend, id session.ThreadID) map[string]func() error {
	return map[string]func() error{
		"Secret":   func() error { return second(store.Secret(ctx, session.Secret("x"))) },
		"Find":     func() error { return second(store.Find(ctx, []session.Hash{{}}, id)) },
		"Thread":   func() error { return second(store.Thread(ctx, id)) },
		"Append":   func() error { return store.Append(ctx, batch(id, 0, 1)) },
		"Condense": func() error { return second(store.Condense(ctx, id, condensation(8))) },
		"Prepare":  func() error { return store.Prepare(ctx, id, condensation(8)) },
		"Prepared": func() error { return second(store.Prepared(ctx, id)) },
		"Summary":  func() error { return second(store.Summary(ctx, session.CondensationID{Thread: id, Seq: 43})) },
		"Events":   func() error { return second(store.Events(ctx, id, 1, 1)) },
		"Trace":    func() error { return second(store.Trace(ctx, []session.Hash{{}})) },
		"Mark":     func() error { return store.Mark(ctx, []session.Hash{{}}, place(id, 1)) },
		"Save":     func() error { return store.Save(ctx, id, session.Savings{Tokens: 1}) },
		"Session":  func() error { return second(store.Session(ctx, session.SessionID("s-"+id))) },
		"Lock":     func() error { return second(store.Lock(ctx, id, time.Second)) },
		"Request":  func() error { return store.Request(ctx, id, clock) },
		"Forget":   func() error { return store.Forget(ctx, session.SessionID("s-"+id)) },
	}
}

// wantGone checks that the store has neither the thread nor its session.
func wantGone(t *testing.T, store session.Backend, id session.ThreadID) {
	t.Helper()
	all := calls(ctx(t), store, id)
	for _, name := range []string{
		"Thread", "Condense", "Prepare", "Prepared", "Summary", "Events", "Mark", "Save", "Session", "Request", "Forget", "Thread",
	} {
		if err := all[name](); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s of %q: got %v, want %v", name, id, err, session.ErrNotFound)
		}
	}
}

func (s suite) ReadNotFound(t *testing.T) {
	store := s.begun(t, 1)
	wantGone(t, store, "")
	wantGone(t, store, "u")
	for _, id := range []session.CondensationID{{Thread: "t", Seq: 1}, {Thread: "t"}, {}, {Thread: "u", Seq: 1}} {
		is(t, second(store.Summary(ctx(t), id)), session.ErrNotFound)
	}
}

// ReadCancelled: a call whose context is cancelled returns the context's error and changes nothing.
func (s suite) ReadCancelled(t *testing.T) {
	store := s.fresh(t)
	gone, cancel := context.WithCancel(ctx(t))
	cancel()
	for name, call := range calls(gone, store, "t") {
		t.Run(name, func(t *testing.T) { is(t, call(), context.Canceled) })
	}
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
}

// ReadOwned: the caller may change what it gave to the store or got from it.
func (s suite) ReadOwned(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 1)
	ok(t, store.Append(ctx(t), b))
	clear(b.Events[0].Payload)
	first := events(t, store, "t")
	equal(t, first, logged(batch("t", 0, 1), 1))
	clear(first[0].Payload)
	equal(t, events(t, store, "t"), logged(batch("t", 0, 1), 1))
	clear(must(store.Secret(ctx(t), session.Secret("proposed")))(t))
	equal(t, string(must(store.Secret(ctx(t), session.Secret("other")))(t)), "proposed")
}

// SecretFirst: the first secret stays. An empty one is refused, because anyone could forge a chain keyed with it.
func (s suite) SecretFirst(t *testing.T) {
	store, other := s.pair(t)
	if _, err := store.Secret(ctx(t), nil); err == nil {
		t.Error("an empty secret was accepted")
	}
	first := must(store.Secret(ctx(t), session.Secret("\x00one\xff")))(t)
	equal(t, string(first), "\x00one\xff")
	for _, st := range []session.Backend{store, other, store} {
		equal(t, must(st.Secret(ctx(t), session.Secret("two")))(t), first)
	}
}
