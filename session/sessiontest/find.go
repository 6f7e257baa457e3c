package sessiontest

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) FindNothingAsked(t *testing.T) {
	store := s.fresh(t)
	found := lookup(t, store, nil, "")
	if len(found.Places) != 0 || found.Hinted != nil {
		t.Errorf("got %+v", found)
	}
	equal(t, lookup(t, store, []session.Hash{hash("unknown"), {}}, "unknown"), session.Found{Places: make([]session.Place, 2)})
}

func (s suite) FindOrder(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("a", 0, 9)))
	ok(t, store.Append(ctx(t), batch("b", 0, 2)))
	at := func(id session.ThreadID, pos int) session.Hash { return hash(id, pos) }
	found := lookup(t, store, []session.Hash{at("a", 9), at("b", 1), at("a", 10), at("a", 3), at("a", 9), {}}, "")
	want := []session.Place{place("a", 9), place("b", 1), {}, place("a", 3), place("a", 9), {}}
	equal(t, found, session.Found{Places: want})
	equal(t, found.Places[2].Known(), false)
}

func (s suite) FindHint(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("a", 0, 9)))
	c := condensed(t, store, "a", condensation(8))
	want := thread(t, store, "a")
	equal(t, want.Condensations, []session.Condensation{listed(c)})
	for _, hashes := range [][]session.Hash{nil, {hash("unknown")}, {hash("a", 9)}} {
		found := lookup(t, store, hashes, "a")
		if found.Hinted == nil {
			t.Fatal("the hinted thread was not found")
		}
		equal(t, *found.Hinted, want)
		equal(t, len(found.Places), len(hashes))
	}
}

// FindTraces: traces that are asked for with the places are what Trace gives, whatever else is asked for.
func (s suite) FindTraces(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("a", 0, 9)))
	ok(t, store.Append(ctx(t), batch("b", 0, 2)))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("x"), hash("y")}, place("a", 3)))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("a", 9)}, place("b", 2))) // a chain hash's twin
	traces := []session.Hash{hash("y"), hash("unknown"), hash("a", 9), hash("b", 1)}
	want := lookupTraces(t, store, traces...)
	equal(t, want, []session.Place{place("a", 3), {}, place("b", 2), {}})
	for _, hint := range []session.ThreadID{"", "a", "unknown"} {
		for _, hashes := range [][]session.Hash{{}, {hash("a", 9), hash("x")}} {
			alone := lookup(t, store, hashes, hint)
			found := lookup(t, store, hashes, hint, traces...)
			equal(t, found.Traced, want)
			found.Traced = nil
			equal(t, found, alone)
		}
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

func (s suite) FindOverwritten(t *testing.T) {
	store, b := s.fresh(t), batch("b", 0, 1)
	ok(t, store.Append(ctx(t), batch("a", 0, 1)))
	b.Places[0].Hash = hash("a", 1)
	ok(t, store.Append(ctx(t), b))
	equal(t, lookup(t, store, []session.Hash{b.Places[0].Hash}, "").Places, []session.Place{place("b", 1)})
}

func (s suite) TraceUnknown(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Mark(ctx(t), nil, place("a", 1)))
	equal(t, len(lookupTraces(t, store)), 0)
	equal(t, lookupTraces(t, store, hash("x"), session.Hash{}), make([]session.Place, 2))
}

func (s suite) TraceNewerWins(t *testing.T) {
	store := s.fresh(t)
	for _, id := range []session.ThreadID{"a", "b"} {
		ok(t, store.Append(ctx(t), batch(id, 0, 3)))
	}
	ok(t, store.Mark(ctx(t), []session.Hash{hash("x"), hash("y")}, place("a", 1)))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("y"), hash("z")}, place("b", 2)))
	equal(t, lookupTraces(t, store, hash("z"), hash("x"), hash("y"), hash("w")), []session.Place{place("b", 2), place("a", 1), place("b", 2), {}})
	found := lookup(t, store, []session.Hash{hash("x")}, "")
	equal(t, found.Places, make([]session.Place, 1)) // a trace is no chain hash
}

func (s suite) TraceOfABatch(t *testing.T) {
	store, with, without := s.fresh(t), batch("a", 0, 3), batch("b", 0, 3)
	with.Traces, without.Traces, without.Places = []session.Hash{hash("x")}, []session.Hash{hash("y")}, nil
	ok(t, store.Append(ctx(t), with))
	ok(t, store.Append(ctx(t), without))
	equal(t, lookupTraces(t, store, hash("x"), hash("y")), []session.Place{place("a", 3), {Thread: "b", Session: "s-b", Pos: 3}})
}
