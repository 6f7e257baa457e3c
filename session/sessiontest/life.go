package sessiontest

import (
	"fmt"
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
	if a, is := store.(session.Archive); is {
		ok(t, a.Request(ctx(t), "t", clock))
		equal(t, thread(t, store, "t").Requested, 32)
	}
	ok(t, store.Append(ctx(t), batch("t", 30, 2))) // right before it closes
	before, log := thread(t, store, "t"), events(t, store, "t")

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

// LifeClosed: a closed store is one that cannot be reached.
func (s suite) LifeClosed(t *testing.T) {
	store := s.open(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	ok(t, store.Close())
	ok(t, store.Close())
	is(t, store.Append(ctx(t), batch("t", 1, 1)), session.ErrUnavailable)
	is(t, second(store.Thread(ctx(t), "t")), session.ErrUnavailable)
	is(t, second(store.Find(ctx(t), []session.Hash{{}}, "t")), session.ErrUnavailable)
	is(t, second(store.Condense(ctx(t), "t", condensation(8))), session.ErrUnavailable)
	is(t, second(store.Events(ctx(t), "t", 1, 1)), session.ErrUnavailable)
}

// LifeReplicaSees: what one replica has written the other one reads, and holds its lock against it.
func (s suite) LifeReplicaSees(t *testing.T) {
	store, other := s.pair(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	c := condensed(t, store, "t", condensation(6))
	equal(t, thread(t, other, "t"), thread(t, store, "t"))
	equal(t, events(t, other, "t"), events(t, store, "t"))
	equal(t, must(other.Summary(ctx(t), c.ID))(t), c.Summary)
	lease, err := store.Lock(ctx(t), "t", time.Hour)
	ok(t, err)
	defer lease.Release()
	is(t, second(other.Lock(ctx(t), "t", time.Hour)), session.ErrLocked)
}

// LifeEverUsed: the record of a session to which threads come for ever lists the newest, in their order, and nothing makes
// it grow. A thread that fell off the list is there all the same.
func (s suite) LifeEverUsed(t *testing.T) {
	const more = session.MaxThreads/4 + 20
	store := s.fresh(t)
	name := func(i int) session.ThreadID { return session.ThreadID(fmt.Sprintf("t%05d", i)) }
	begin := func(i, at int) {
		b := batch(name(i), at, 1)
		b.Thread.Session, b.Key = "ses", "nightly"
		ok(t, store.Append(ctx(t), b))
	}
	for i := range session.MaxThreads + more {
		begin(i, 0)
	}
	begin(session.MaxThreads, 1) // one of those listed goes on
	ses := sessionAt(t, store, "ses")
	want := make([]session.ThreadID, session.MaxThreads)
	for i := range want {
		want[i] = name(i + more)
	}
	equal(t, ses.Threads, want)
	equal(t, ses.Key, "nightly")
	equal(t, thread(t, store, name(0)).Len, 1)
}
