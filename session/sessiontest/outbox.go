package sessiontest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// noted is the notice of what a thread of acme made at a second.
func noted(thread session.ThreadID, second int64) session.Notice {
	return session.Notice{Tenant: "acme", Thread: thread, Made: time.Unix(1_700_000_000+second, 123_456_789)}
}

func enqueue(t *testing.T, store session.Store, limit int, notices ...session.Notice) {
	t.Helper()
	for _, n := range notices {
		equal(t, must(store.Enqueue(ctx(t), n, limit))(t), true)
	}
}

// queued wants a part of what is noted of acme.
func queued(t *testing.T, store session.Store, from, limit, total int, want ...session.Notice) {
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
	enqueue(t, other, 9, b, a) // one of them once more
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

// OutboxNamed: a notice finds what its thread has logged, by its own time, and not what a fork has of its parent.
func (s suite) OutboxNamed(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	c := condensation(6)
	c.Time = noted("t", 7).Made
	enqueue(t, store, 9, noted("t", 7))
	c = condensed(t, store, "t", c)
	got := thread(t, s.replica(t, store), "t")
	n, early := noted("t", 7), noted("t", 6)
	if found := n.Named(&got); found == nil || found.ID != c.ID {
		t.Errorf("found %+v", found)
	}
	if found := early.Named(&got); found != nil {
		t.Errorf("found %+v of another time", found)
	}
	got.Condensations[0].ID.Thread = "parent"
	if found := n.Named(&got); found != nil {
		t.Errorf("found %+v of another thread", found)
	}
}

// OutboxAtOnce: however many come at once, no more than the limit are noted.
func (s suite) OutboxAtOnce(t *testing.T) {
	store, other := s.pair(t)
	var in atomic.Int32
	together(t, 40, func(i int, store session.Store) error {
		is, err := store.Enqueue(ctx(t), noted(session.ThreadID(fmt.Sprint("t", i)), int64(i)), 7)
		if is {
			in.Add(1)
		}
		return err
	}, store, other)
	equal(t, in.Load(), 7)
	_, total, err := store.Enqueued(ctx(t), "acme", 0, 1)
	ok(t, err)
	equal(t, total, 7)
}
