package sessiontest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// CondenseLogged: every replica sees a condensation at once, and the messages before it.
func (s suite) CondenseLogged(t *testing.T) {
	store, other := s.pair(t)
	b := batch("t", 0, 8)
	ok(t, store.Append(ctx(t), b))
	c := condensation(8)
	c.ID = session.CondensationID{Thread: "other", Seq: 77} // ignored: the store sets it
	got := must(store.Condense(ctx(t), "t", c))(t)
	c.ID = session.CondensationID{Thread: "t", Seq: 9}
	equal(t, got, c)

	want := b.Thread
	want.Seq, want.Requests, want.Condensations = 9, 1, []session.Condensation{listed(c)}
	equal(t, thread(t, other, "t"), want)
	last := session.Event{Seq: 9, Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
	equal(t, events(t, other, "t"), append(logged(b, 1), last))
	equal(t, must(other.Summary(ctx(t), got.ID))(t), c.Summary)
}

func (s suite) CondenseZero(t *testing.T) {
	store := s.begun(t, 1)
	c := must(store.Condense(ctx(t), "t", session.Condensation{}))(t)
	equal(t, c, session.Condensation{ID: session.CondensationID{Thread: "t", Seq: 2}})
	equal(t, thread(t, store, "t").Condensations, []session.Condensation{c})
}

func (s suite) CondensePrepared(t *testing.T) {
	store := s.begun(t, 8)
	is(t, second(store.Prepared(ctx(t), "t")), session.ErrNotFound)
	before := thread(t, store, "t")
	for _, prefix := range []int{6, 8} {
		c := condensation(prefix)
		ok(t, store.Prepare(ctx(t), "t", c))
		c.ID = session.CondensationID{Thread: "t"}
		equal(t, must(s.replica(t, store).Prepared(ctx(t), "t"))(t), c)
	}
	equal(t, thread(t, store, "t"), before)
	is(t, second(store.Summary(ctx(t), session.CondensationID{Thread: "t"})), session.ErrNotFound)
	trim := session.Condensation{Reason: session.ReasonArrival, Prefix: 7, Hash: hash("t", "7"), Time: clock}
	ok(t, second(store.Condense(ctx(t), "t", trim)))
	ok(t, second(store.Prepared(ctx(t), "t")))
	ok(t, second(store.Condense(ctx(t), "t", condensation(7))))
	is(t, second(store.Prepared(ctx(t), "t")), session.ErrNotFound)
}

// CondenseReplacement: a replacement is listed separately from condensations, does not fulfil a request for a condensation, and does not
// delete a prepared one.
func (s suite) CondenseReplacement(t *testing.T) {
	store := s.begun(t, 8)
	one := must(store.Condense(ctx(t), "t", condensation(6)))(t)
	ok(t, store.Prepare(ctx(t), "t", condensation(8)))
	ok(t, store.Request(ctx(t), "t", clock))
	before := thread(t, store, "t")
	c := session.Condensation{Prefix: 9, Hash: hash("t", "answer"), Summary: "[[{}]]", Reason: session.ReasonReplacement, Time: clock}
	c = must(store.Condense(ctx(t), "t", c))(t)
	want := before
	want.Seq, want.Replacements = c.ID.Seq, []session.Condensation{listed(c)}
	equal(t, thread(t, s.replica(t, store), "t"), want)
	equal(t, want.Condensations, []session.Condensation{listed(one)})
	log := events(t, store, "t")
	equal(t, log[len(log)-1], session.Event{Seq: c.ID.Seq, Kind: session.HiddenCalls, Time: clock})
	equal(t, must(s.replica(t, store).Summary(ctx(t), c.ID))(t), c.Summary)
	ok(t, second(store.Prepared(ctx(t), "t")))

	b := fork("t", 8, "fork", 2)
	b.Thread.Condensations, b.Thread.Replacements = want.Condensations, want.Replacements
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "fork").Replacements, want.Replacements)
	equal(t, thread(t, store, "fork").Condensations, want.Condensations)
}

// noted returns the notice of a condensation of acme, made at the given second.
func noted(thread session.ThreadID, second int64) session.Notice {
	return session.Notice{Tenant: "acme", Thread: thread, Made: time.Unix(1_700_000_000+second, 123_456_789)}
}

func enqueue(t *testing.T, store session.Backend, limit int, notices ...session.Notice) {
	t.Helper()
	for _, n := range notices {
		equal(t, must(store.Enqueue(ctx(t), n, limit))(t), true)
	}
}

// queued checks a page of the notices of acme.
func queued(t *testing.T, store session.Backend, from, limit, total int, want ...session.Notice) {
	t.Helper()
	got, n, err := store.Enqueued(ctx(t), "acme", from, limit)
	ok(t, err)
	equal(t, got, want)
	equal(t, n, total)
}

func (s suite) OutboxQueue(t *testing.T) {
	store, other := s.pair(t)
	queued(t, store, 0, 9, 0)
	a, b, c := noted("a", 1), noted("{b}%\x00", 2), noted("a", 3)
	foreign := noted("a", 1)
	foreign.Tenant = "acm"
	enqueue(t, store, 9, c, a, foreign)
	enqueue(t, other, 9, b, a) // the second one a second time
	queued(t, other, 0, 9, 3, a, b, c)
	queued(t, store, 1, 1, 3, b)
	queued(t, store, 3, 9, 3)
	for range 2 {
		ok(t, other.Dequeue(ctx(t), b))
		queued(t, store, 0, 9, 2, a, c)
	}
	ok(t, store.Dequeue(ctx(t), a))
	ok(t, store.Dequeue(ctx(t), c))
	queued(t, other, 0, 9, 0)
}

func (s suite) OutboxFull(t *testing.T) {
	store := s.fresh(t)
	a, b, c := noted("a", 1), noted("b", 2), noted("c", 3)
	enqueue(t, store, 2, a, b, a)
	equal(t, must(store.Enqueue(ctx(t), c, 2))(t), false)
	queued(t, store, 0, 9, 2, a, b)
	ok(t, store.Dequeue(ctx(t), a))
	enqueue(t, store, 2, c)
	queued(t, store, 0, 9, 2, b, c)
}

// OutboxNamed: a notice names the condensation of its thread with its exact time, not one inherited from a parent.
func (s suite) OutboxNamed(t *testing.T) {
	store, c := s.begun(t, 8), condensation(6)
	c.Time = noted("t", 7).Made
	enqueue(t, store, 9, noted("t", 7))
	ok(t, second(store.Condense(ctx(t), "t", c)))
	got := thread(t, s.replica(t, store), "t")
	n, early := noted("t", 7), noted("t", 6)
	equal(t, n.Named(&got), &got.Condensations[0])
	equal(t, early.Named(&got), nil)
	got.Condensations[0].ID.Thread = "parent"
	equal(t, n.Named(&got), nil)
}

// OutboxAtOnce: concurrent notices do not exceed the limit.
func (s suite) OutboxAtOnce(t *testing.T) {
	store, other := s.pair(t)
	wantWinners(t, 40, 7, func(i int, store session.Backend) (bool, error) {
		return store.Enqueue(ctx(t), noted(session.ThreadID(fmt.Sprint("t", i)), int64(i)), 7)
	}, store, other)
	_, total, err := store.Enqueued(ctx(t), "acme", 0, 1)
	ok(t, err)
	equal(t, total, 7)
}
