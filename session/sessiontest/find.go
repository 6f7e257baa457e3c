package sessiontest

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

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
	c := condensed(t, store, "a", condensation(8))
	hinted := thread(t, store, "a")
	equal(t, hinted.Condensations, []session.Condensation{listed(c)})
	ok(t, store.Mark(ctx(t), []session.Hash{hash("x"), hash("y")}, place("a", 3)))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("a", 9)}, place("b", 2))) // equal to a chain hash
	traces := []session.Hash{hash("y"), hash("unknown"), hash("a", 9), hash("b", 1)}
	traced := []session.Place{place("a", 3), {}, place("b", 2), {}}
	equal(t, lookupTraces(t, store, traces...), traced)
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
	a.Traces, b.Traces, b.Places = []session.Hash{hash("batch")}, []session.Hash{hash("no places")}, nil
	ok(t, store.Append(ctx(t), a))
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("x"), hash("y")}, place("a", 1)))
	ok(t, store.Mark(ctx(t), []session.Hash{hash("y"), hash("z")}, place("b", 2)))
	ok(t, store.Mark(ctx(t), nil, place("unknown", 1)))
	equal(t, len(lookupTraces(t, store)), 0)
	equal(t, lookupTraces(t, store, hash("z"), hash("x"), hash("y"), hash("unknown"), hash("batch"), hash("no places")), []session.Place{
		place("b", 2), place("a", 1), place("b", 2), {}, place("a", 3), {Thread: "b", Session: "s-b", Pos: 3},
	})
}
