package session

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// TestSearchFindsTheLongestKnownPrefix plays a search against a store that knows the first k of n positions.
func TestSearchFindsTheLongestKnownPrefix(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "known")
		wide := rapid.Bool().Draw(t, "wide")
		got, rounds, lookups := play(n, k, wide)
		if got != k {
			t.Fatalf("%d of %d known: found %d", k, n, got)
		}
		if rounds > 5 || lookups > Newest+3*probes+20 {
			t.Fatalf("%d of %d known: %d round trips, %d lookups", k, n, rounds, lookups)
		}
		if wide && k == 0 && rounds > 1 {
			t.Fatalf("none of %d known took %d round trips", n, rounds)
		}
		if n-k < Newest && n > 0 && rounds > 1 {
			t.Fatalf("%d of %d known took %d round trips", k, n, rounds)
		}
	})
}

func play(n, k int, wide bool) (found, rounds, lookups int) {
	s := newSearch(n)
	s.wide = wide
	for positions := s.next(); positions != nil; positions = s.next() {
		rounds++
		lookups += len(positions)
		places := make([]Place, len(positions))
		for i, p := range positions {
			if p < 1 || p > n {
				panic("looked outside the history")
			}
			if p <= k {
				places[i] = Place{Thread: "t", Pos: p}
			}
		}
		s.seen(positions, places)
	}
	return s.low, rounds, lookups
}

func TestClassify(t *testing.T) {
	h := NewHistory(Hash{}, parseMessages("u aX oX g u"))
	thread := func(n int) *Thread { return &Thread{ID: "t", Len: n, Head: h.Chain[min(n, h.Len())]} }
	f := func(name string, p int, t1 *Thread, want Match, from int) {
		t.Helper()
		if got, at := classify(h, p, t1); got != want || at != from {
			t.Errorf("%s: got %v at %d, want %v at %d", name, got, at, want, from)
		}
	}
	f("its end", 3, thread(3), MatchEnd, 3)
	f("all of it", 5, thread(5), MatchEnd, 5)
	f("the index is ahead of the log", 4, thread(2), MatchEnd, 2)
	f("inside", 2, &Thread{ID: "t", Len: 9}, MatchInside, 2)
	f("the index is behind the log", 2, thread(4), MatchEnd, 4)
	f("a replay", 5, &Thread{ID: "t", Len: 9}, MatchReplay, 5)
	f("another head at its end", 3, &Thread{ID: "t", Len: 3, Head: Hash{9}}, MatchNone, 0)
	f("another head", 4, &Thread{ID: "t", Len: 3, Head: Hash{9}}, MatchNone, 0)
}
