package sessiontest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

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
