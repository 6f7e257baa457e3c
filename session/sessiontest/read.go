package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) EventsPaging(t *testing.T) {
	store := s.begun(t, 7)
	ok(t, second(store.Condense(ctx(t), "t", condensation(6))))
	ok(t, store.Append(ctx(t), batch("t", 7, 2)))
	all := must(store.Events(ctx(t), "t", 1, 100))(t)
	equal(t, len(all), 10)
	for _, page := range []struct {
		from      uint64
		limit     int
		low, high int
	}{
		{0, 3, 0, 3}, {1, 3, 0, 3}, {4, 3, 3, 6}, {9, 3, 8, 10}, {10, 1, 9, 10}, {11, 5, 0, 0}, {1, 0, 0, 0},
		{1, math.MaxInt, 0, 10}, {10, math.MaxInt, 9, 10}, {math.MaxUint64, 1, 0, 0}, {math.MaxUint64, math.MaxInt, 0, 0},
		{0, -3, 0, 0}, {1, -3, 0, 1}, {3, -3, 0, 3}, {8, -3, 5, 8}, {9, -1, 8, 9}, {10, -5, 5, 10}, {20, -2, 8, 10}, {10, math.MinInt, 0, 10},
		{math.MaxUint64, -1, 9, 10}, {math.MaxUint64, -math.MaxInt, 0, 10},
	} {
		t.Logf("page %+v", page)
		got := must(store.Events(ctx(t), "t", page.from, page.limit))(t)
		equal(t, append([]session.Event{}, got...), append([]session.Event{}, all[page.low:page.high]...))
	}
}

// EventsBytes: a page ends with the entry that fills it, even if the entries are stored in a few bytes.
func (s suite) EventsBytes(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 6)
	for i := range b.Events {
		b.Events[i].Payload = bytes.Repeat([]byte{'a' + byte(i)}, session.PageBytes*2/5)
	}
	b.Events[5].Payload = bytes.Repeat([]byte("f"), session.PageBytes)
	ok(t, store.Append(ctx(t), b))
	page := func(at uint64, limit int) (first string) {
		for _, e := range must(store.Events(ctx(t), "t", at, limit))(t) {
			first += string(e.Payload[:1])
		}
		return first
	}
	equal(t, []string{page(1, 100), page(4, 100), page(6, 100)}, []string{"abc", "def", "f"})
	equal(t, []string{page(6, -100), page(5, -100), page(2, -100)}, []string{"f", "cde", "ab"})
}

func (s suite) FindOrder(t *testing.T) {
	store, b := s.fresh(t), batch("b", 0, 2)
	ok(t, store.Append(ctx(t), batch("a", 0, 9)))
	b.Places[1].Hash = hash("a", 4) // it now points to b
	ok(t, store.Append(ctx(t), b))
	found := lookup(t, store, []session.Hash{hash("a", 9), hash("b", 1), hash("a", 10), hash("a", 3), hash("a", 4), hash("a", 9), {}}, "")
	want := []session.Place{place("a", 9), place("b", 1), {}, place("a", 3), place("b", 2), place("a", 9), {}}
	equal(t, found, session.Found{Places: want})
	equal(t, found.Places[2].Known(), false)
}

// FindParts: the hinted thread, the places and the traces do not depend on what else is requested.
func (s suite) FindParts(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("a", 0, 9)))
	ok(t, store.Append(ctx(t), batch("b", 0, 2)))
	c := must(store.Condense(ctx(t), "a", condensation(8)))(t)
	hinted := thread(t, store, "a")
	equal(t, hinted.Condensations, []session.Condensation{listed(c)})
	ok(t, store.Mark(ctx(t), place("a", 3), session.Traces{Lasting: []session.Hash{hash("x"), hash("y")}}))
	ok(t, store.Mark(ctx(t), place("b", 2), session.Traces{Lasting: []session.Hash{hash("a", 9)}})) // equal to a chain hash
	traces := []session.Hash{hash("y"), hash("unknown"), hash("a", 9), hash("b", 1)}
	traced := []session.Place{place("a", 3), {}, place("b", 2), {}}
	equal(t, must(store.Trace(ctx(t), traces))(t), traced)
	hashes := []session.Hash{{}, hash("x"), hash("a", 9)} // a trace is not a chain hash
	places := []session.Place{{}, {}, place("a", 9)}
	for hint, thread := range map[session.ThreadID]*session.Thread{"": nil, "unknown": nil, "a": &hinted} {
		for n := range len(hashes) + 1 {
			found := lookup(t, store, hashes[:n], hint, traces...)
			equal(t, found, session.Found{Places: places[:n], Hinted: thread, Traced: traced})
			found.Traced = nil
			equal(t, lookup(t, store, hashes[:n], hint), found)
		}
		equal(t, len(lookup(t, store, nil, hint).Places), 0)
	}
}

func (s suite) Find5000(t *testing.T) {
	const n = 5000
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("big", 0, n)))
	hashes, want := make([]session.Hash, n), make([]session.Place, n)
	for i := range hashes {
		hashes[i], want[i] = hash("big", n-i), place("big", n-i)
	}
	found := lookup(t, store, hashes, "big")
	equal(t, found.Places, want)
	equal(t, found.Hinted.Seq, n)
	all := events(t, store, "big")
	equal(t, len(all), n)
	equal(t, all[n-1], logged(batch("big", n-1, 1), n)[0])
}

func (s suite) TraceNewerWins(t *testing.T) {
	store, a, b := s.fresh(t), batch("a", 0, 3), batch("b", 0, 3)
	a.Traces.Lasting, b.Traces.Recent, b.Places = []session.Hash{hash("batch")}, []session.Hash{hash("no places")}, nil
	ok(t, store.Append(ctx(t), a))
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Mark(ctx(t), place("a", 1), session.Traces{Lasting: []session.Hash{hash("x"), hash("y")}}))
	ok(t, store.Mark(ctx(t), place("b", 2), session.Traces{Lasting: []session.Hash{hash("y"), hash("z")}}))
	ok(t, store.Mark(ctx(t), place("unknown", 1), session.Traces{}))
	ok(t, store.Mark(ctx(t), place("b", 3), session.Traces{First: []session.Hash{hash("first"), hash("z")}}))
	ok(t, store.Mark(ctx(t), place("a", 2), session.Traces{Recent: []session.Hash{hash("last")}, First: []session.Hash{hash("first"), hash("last first")}}))
	more := batch("a", 3, 1)
	more.Traces.First = []session.Hash{hash("first"), hash("batch first")}
	ok(t, store.Append(ctx(t), more))
	firsts := []session.Hash{hash("first"), hash("last"), hash("last first"), hash("batch first")}
	equal(t, must(store.Trace(ctx(t), firsts))(t), []session.Place{place("b", 3), place("a", 2), place("a", 2), place("a", 4)})
	equal(t, len(must(store.Trace(ctx(t), nil))(t)), 0)
	traces := []session.Hash{hash("z"), hash("x"), hash("y"), hash("unknown"), hash("batch"), hash("no places")}
	equal(t, must(store.Trace(ctx(t), traces))(t), []session.Place{
		place("b", 2), place("a", 1), place("b", 2), {}, place("a", 3), {Thread: "b", Session: "s-b", Pos: 3},
	})
}

// Answers: a thread has the notes of all its answers, in their order, even those that left no traces. They do not survive the thread.
func (s suite) Answers(t *testing.T) {
	store := s.begun(t, 3)
	equal(t, len(must(store.Answers(ctx(t), "t"))(t)), 0)
	equal(t, len(must(store.Answers(ctx(t), "unknown"))(t)), 0)
	want := []session.Answer{{Pos: 1, Request: 7}, {Pos: 200}, {Pos: 200, Request: math.MaxUint64}, {Pos: 70_000, Request: 8}}
	for i, a := range want {
		traces := session.Traces{Request: a.Request}
		if i == 1 {
			traces.Lasting = []session.Hash{hash("lasting")}
		}
		ok(t, store.Mark(ctx(t), place("t", a.Pos), traces))
	}
	equal(t, must(store.Answers(ctx(t), "t"))(t), want)
	ok(t, store.Append(ctx(t), batch("other", 0, 1)))
	equal(t, len(must(store.Answers(ctx(t), "other"))(t)), 0)
	ok(t, store.Forget(ctx(t), "s-t"))
	equal(t, len(must(store.Answers(ctx(t), "t"))(t)), 0)
}

// PlacesPassed: the places of passed positions are deleted, unless they point to another thread.
func (s suite) PlacesPassed(t *testing.T) {
	store := s.begun(t, 4)
	other := batch("other", 0, 1)
	other.Places = []session.IndexEntry{{Hash: hash("t", 2), Place: place("other", 1)}}
	ok(t, store.Append(ctx(t), other))
	b := batch("t", 4, 2)
	b.Passed = []session.Hash{hash("t", 1), hash("t", 2), hash("t", 3), hash("unknown")}
	ok(t, store.Append(ctx(t), b))
	hashes := []session.Hash{hash("t", 1), hash("t", 2), hash("t", 3), hash("t", 4), hash("t", 5), hash("t", 6)}
	want := []session.Place{{}, place("other", 1), {}, place("t", 4), place("t", 5), place("t", 6)}
	equal(t, lookup(t, store, hashes, "").Places, want)
}

// TraceRecent: a thread keeps its newest recent traces. Those that were stored again or taken over by another thread are not deleted.
func (s suite) TraceRecent(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("b", 0, 3)))
	for step := range 5 {
		b := batch("a", step, 1)
		b.Traces.Recent = manyRecent("a", step)
		if step == 0 {
			b.Traces.Lasting = []session.Hash{hash("lasting")}
			b.Traces.First = []session.Hash{hash("first")}
		}
		ok(t, store.Append(ctx(t), b))
		if step == 0 {
			ok(t, store.Mark(ctx(t), place("b", 2), session.Traces{Recent: manyRecent("a", 0)[:1]}))
		}
		if step == 2 {
			ok(t, store.Mark(ctx(t), place("a", 3), session.Traces{Recent: manyRecent("a", 0)[1:2]}))
		}
	}
	traces := append(manyRecent("a", 0), hash("first"), hash("lasting"))
	want := make([]session.Place, len(traces))
	want[0], want[1], want[len(want)-1] = place("b", 2), place("a", 3), place("a", 1)
	equal(t, must(store.Trace(ctx(t), traces))(t), want)
	for step := 2; step < 5; step++ {
		for _, p := range must(store.Trace(ctx(t), manyRecent("a", step)))(t) {
			equal(t, p, place("a", step+1))
		}
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
		"Answers":  func() error { return second(store.Answers(ctx, id)) },
		"Mark":     func() error { return store.Mark(ctx, place(id, 1), session.Traces{Lasting: []session.Hash{{}}}) },
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
	clear(must(store.Secret(ctx(t), session.Secret("\x00proposed\xff")))(t))
	equal(t, string(must(store.Secret(ctx(t), session.Secret("other")))(t)), "\x00proposed\xff")
}

// LifeReopen: a restart keeps everything.
func (s suite) LifeReopen(t *testing.T) {
	store := s.open(t)
	b := batch("t", 0, 30)
	b.Traces = session.Traces{Lasting: []session.Hash{hash("trace")}}
	ok(t, store.Append(ctx(t), b))
	c := must(store.Condense(ctx(t), "t", condensation(12)))(t)
	secret := must(store.Secret(ctx(t), session.Secret("secret")))(t)
	ok(t, store.Mark(ctx(t), place("t", 7), session.Traces{Lasting: []session.Hash{hash("mark")}}))
	ok(t, store.Save(ctx(t), "t", session.Savings{Tokens: 1}))
	ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Begun: time.UnixMilli(1), Sums: session.Sums{Sessions: 1}}))
	reserve(t, store, "a", charge("x", 10, 0))
	ok(t, store.Settle(ctx(t), "a", []session.Charge{charge("x", 7, 0)}))
	enqueue(t, store, 9, noted("a", 1), noted("b", 2))
	ok(t, store.Dequeue(ctx(t), noted("a", 1)))
	ok(t, store.Request(ctx(t), "t", clock))
	ok(t, store.Append(ctx(t), batch("t", 30, 2))) // right before it closes
	before, log := thread(t, store, "t"), events(t, store, "t")
	equal(t, before.Requested, 32)

	store = closing(t, s.hooks.Reopen(t, store))
	equal(t, thread(t, store, "t"), before)
	equal(t, events(t, store, "t"), log)
	equal(t, must(store.Summary(ctx(t), c.ID))(t), c.Summary)
	equal(t, must(store.Secret(ctx(t), session.Secret("another")))(t), secret)
	equal(t, must(store.Trace(ctx(t), []session.Hash{hash("trace"), hash("mark")}))(t), []session.Place{place("t", 30), place("t", 7)})
	equal(t, must(store.Session(ctx(t), "s-t"))(t).Threads, []session.ThreadID{"t"})
	equal(t, must(store.Saved(ctx(t), "t"))(t), session.Savings{Tokens: 1})
	equal(t, must(store.Experiment(ctx(t), "a"))(t).Arms[0][0].Sessions, int64(1))
	equal(t, reserve(t, store, "", charge("x", 0, 0)), balance(17, 0))
	queued(t, store, 0, 9, 1, noted("b", 2))
	equal(t, lookup(t, store, []session.Hash{hash("t", 32)}, "t"), session.Found{Places: []session.Place{place("t", 32)}, Hinted: &before})
	ok(t, store.Append(ctx(t), batch("t", 32, 1)))
}

// LifeClosed: a closed store is unavailable. Closing it twice is fine.
func (s suite) LifeClosed(t *testing.T) {
	store := s.begun(t, 1)
	ok(t, store.Close())
	for name, call := range calls(ctx(t), store, "t") {
		if name != "Lock" { // a store may keep locks in memory
			t.Run(name, func(t *testing.T) { is(t, call(), session.ErrUnavailable) })
		}
	}
}

// ReadDamaged: a damaged entry leaves all others readable, and its thread can be deleted.
func (s suite) ReadDamaged(t *testing.T) {
	if s.hooks.Damage == nil {
		return
	}
	store, b := s.open(t), batch("t", 0, 5)
	defer store.Close() //nolint:errcheck // it may report the damage
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Append(ctx(t), sharing("n", "t", 5)))
	s.hooks.Damage(t, store, "t", 2, func([]byte) []byte { return []byte("garbage") })
	s.hooks.Damage(t, store, "t", 3, func(entry []byte) []byte {
		at := bytes.Index(entry, b.Events[2].Payload)
		if at < 0 { // it is encrypted
			at = len(entry)
		}
		entry[at-1] ^= 8
		return entry
	})
	want := logged(b, 1)
	want[1], want[2].Payload = session.Event{Seq: 2}, nil
	equal(t, events(t, store, "t"), want)
	equal(t, len(must(store.Events(ctx(t), "t", 2, 1))(t)), 1)
	named := must(store.Events(ctx(t), "n", 1, 1))(t)
	ok(t, session.ReadContent(ctx(t), store, named, math.MaxInt))
	for i, e := range want {
		equal(t, string(named[i].Payload), string(e.Payload))
	}
	ok(t, store.Forget(ctx(t), b.Thread.Session))
	is(t, second(store.Events(ctx(t), "t", 1, 1)), session.ErrNotFound)
}
