package sessiontest

import (
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) saving() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"savings/sums":    s.savingsSums,
		"savings/at once": s.savingsAtOnce,
		"savings/life":    s.savingsLife,
	}
}

func saved(t *testing.T, store session.Store, id session.ThreadID) session.Savings {
	t.Helper()
	got, err := store.Saved(ctx(t), id)
	ok(t, err)
	return got
}

func (s suite) savingsSums(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	ok(t, store.Append(ctx(t), batch("other", 0, 2)))
	equal(t, saved(t, store, "t"), session.Savings{})
	var want session.Savings
	for _, more := range []session.Savings{
		{Tokens: 900, NotSent: 1 << 40, Rewritten: -(1 << 39)},
		{Cost: session.Cost{Calls: 2, Took: 3 * time.Second, Used: session.Usage{Input: 1000, Cached: 10, Output: 20}, Nano: 7}},
		{Tokens: -1000, NotSent: -5, Rewritten: 3, Cost: session.Cost{Unpriced: "strange model"}},
		{Cost: session.Cost{Calls: 1, Took: time.Millisecond}},
	} {
		ok(t, store.Save(ctx(t), "t", more))
		want.Add(more)
	}
	equal(t, saved(t, s.replica(t, store), "t"), want)
	equal(t, saved(t, store, "other"), session.Savings{})
	ok(t, store.Append(ctx(t), batch("t", 2, 2)))
	condensed(t, store, "t", condensation(4))
	equal(t, saved(t, store, "t"), want)
}

func (s suite) savingsAtOnce(t *testing.T) {
	store := s.fresh(t)
	other := s.replica(t, store)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	var work sync.WaitGroup
	for range 40 {
		for _, replica := range []session.Store{store, other} {
			work.Go(func() { ok(t, replica.Save(ctx(t), "t", session.Savings{Tokens: 3, NotSent: -1})) })
		}
	}
	work.Wait()
	equal(t, saved(t, store, "t"), session.Savings{Tokens: 240, NotSent: -80})
}

// savingsLife: they begin and end with their thread.
func (s suite) savingsLife(t *testing.T) {
	store := s.open(t)
	is(t, store.Save(ctx(t), "t", session.Savings{Tokens: 1}), session.ErrNotFound)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	ok(t, store.Save(ctx(t), "t", session.Savings{Tokens: 1}))
	store = s.hooks.Reopen(t, store)
	defer func() { ok(t, store.Close()) }()
	equal(t, saved(t, store, "t"), session.Savings{Tokens: 1})
}
