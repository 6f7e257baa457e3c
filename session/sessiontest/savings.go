package sessiontest

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func saved(t *testing.T, store session.Backend, id session.ThreadID) session.Savings {
	t.Helper()
	return must(store.Saved(ctx(t), id))(t)
}

func (s suite) SavingsSums(t *testing.T) {
	store := s.begun(t, 2)
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

func (s suite) SavingsAtOnce(t *testing.T) {
	store, other := s.pair(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	together(t, 80, func(_ int, store session.Backend) error {
		return store.Save(ctx(t), "t", session.Savings{Tokens: 3, NotSent: -1})
	}, store, other)
	equal(t, saved(t, store, "t"), session.Savings{Tokens: 240, NotSent: -80})
}
