package sessiontest

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// LifeReopen: a restart keeps everything.
func (s suite) LifeReopen(t *testing.T) {
	store := s.open(t)
	b := batch("t", 0, 30)
	b.Traces = []session.Hash{hash("trace")}
	ok(t, store.Append(ctx(t), b))
	c := condensed(t, store, "t", condensation(12))
	secret := must(store.Secret(ctx(t), session.Secret("secret")))(t)
	ok(t, store.Mark(ctx(t), []session.Hash{hash("mark")}, place("t", 7)))
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

	store = s.reopen(t, store)
	equal(t, thread(t, store, "t"), before)
	equal(t, events(t, store, "t"), log)
	equal(t, must(store.Summary(ctx(t), c.ID))(t), c.Summary)
	equal(t, must(store.Secret(ctx(t), session.Secret("another")))(t), secret)
	equal(t, lookupTraces(t, store, hash("trace"), hash("mark")), []session.Place{place("t", 30), place("t", 7)})
	equal(t, sessionAt(t, store, "s-t").Threads, []session.ThreadID{"t"})
	equal(t, saved(t, store, "t"), session.Savings{Tokens: 1})
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
