package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestForkIsFoundAtEveryPosition: although most positions of a thread are not indexed, a history that leaves it is found where it does, and a
// history that ends inside of it is a replay.
func TestForkIsFoundAtEveryPosition(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	turns := func(name string, n int) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprintf("u-%s-%d", name, i), fmt.Sprintf("g-%s-%d", name, i))
		}
		return words
	}
	grow := func(shared, own []string) (res session.Resolution) { // step by step, as an agent does
		for n := 1; n <= len(own); n += 2 {
			res = d.send(d.registry, query(scope, strings.Join(append(shared[:len(shared):len(shared)], own[:n]...), " ")))
		}
		return res
	}
	main := turns("main", 40)
	parent := grow(nil, main)
	fork := append(main[:22:22], turns("fork", 20)...)
	child := grow(main[:22], turns("fork", 20))
	if child.Thread.Parent != parent.Thread.ID || child.Thread.ForkAt != 22 {
		t.Fatalf("%d of %s", child.Thread.ForkAt, child.Thread.Parent)
	}
	f := func(words []string, n int, want session.ThreadID) {
		t.Helper()
		at := func(history []string) session.Resolution {
			res, err := d.another().Resolve(t.Context(), query(scope, strings.Join(history, " ")))
			must(t, err)
			return res
		}
		if res := at(append(words[:n:n], "u-new", "g-new", "u-newer")); res.Match != session.MatchInside || res.Logged != n || res.Thread.Parent != want {
			t.Errorf("a history that leaves %s at %d: %v at %d of %s", want, n, res.Match, res.Logged, res.Thread.Parent)
		}
		if res := at(words[:n]); res.Match != session.MatchReplay || res.Thread.ID != want {
			t.Errorf("the first %d messages of %s: %v in %s", n, want, res.Match, res.Thread.ID)
		}
	}
	for n := 1; n < 79; n++ {
		f(main, n, parent.Thread.ID)
	}
	for n := 23; n < len(fork)-1; n++ {
		f(fork, n, child.Thread.ID)
	}
}

// TestFewPositionsAreIndexed: of a long thread, only the first two positions, the newest and every sixteenth are.
func TestFewPositionsAreIndexed(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	var words []string
	var q session.Query
	for i := range 200 {
		words = append(words, fmt.Sprintf("u%d", i))
		if i%2 == 0 {
			q = query(scope, strings.Join(words, " "))
			d.send(d.registry, q)
		}
		words = append(words, fmt.Sprintf("g%d", i))
	}
	found, err := d.store.Find(t.Context(), q.History.Chain[1:], "")
	must(t, err)
	var known []int
	for _, p := range found.Places {
		if p.Known() {
			known = append(known, p.Pos)
		}
	}
	if n := q.History.Len(); len(known) != n/16+6 || known[0] != 1 || known[len(known)-1] != n {
		t.Errorf("of %d positions, these are indexed: %v", n, known)
	}
}
