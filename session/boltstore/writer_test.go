package boltstore

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// hold prevents commits until release is called, or the test fails: the store could not be closed otherwise.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	tx, err := s.db.Begin(true)
	must(t, err)
	release = sync.OnceFunc(func() { must(t, tx.Rollback()) })
	t.Cleanup(release)
	return release
}

func TestAppendDoesNotWaitForTheDisk(t *testing.T) {
	s, ctx := start(t, Options{Content: true}), t.Context()
	release := hold(t, s)
	for at := 0; at < 20; at += 2 {
		must(t, s.Append(ctx, twoEvents("t", at)))
	}
	if err := s.Append(ctx, twoEvents("t", 4)); !errors.Is(err, session.ErrStale) {
		t.Errorf("got %v, want %v", err, session.ErrStale)
	}
	found, err := s.Find(ctx, []session.Hash{chain("t", 20)}, "t")
	must(t, err)
	if found.Places[0].Pos != 20 || found.Hinted == nil || found.Hinted.Seq != 20 {
		t.Errorf("reads do not see what is queued: %+v", found)
	}
	events, err := s.Events(ctx, "t", 19, 5)
	must(t, err)
	if len(events) != 2 || string(events[1].Payload) != string(payload) {
		t.Errorf("got %+v", events)
	}
	release()
}

// TestBeginningsAreOnDiskSoon: the beginning of a thread, and messages that upstream keeps, are committed sooner than other appends.
func TestBeginningsAreOnDiskSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{}), t.Context()
		defer s.Close()
		queued := func(after time.Duration) int {
			past(after)
			s.mu.RLock()
			defer s.mu.RUnlock()
			return len(s.pending.queued)
		}
		past(linger)
		must(t, s.Append(ctx, twoEvents("t", 0)))
		if n := queued(beginLinger); n > 0 {
			t.Errorf("%d writes of a thread's beginning still wait", n)
		}
		must(t, s.Append(ctx, twoEvents("t", 2)))
		if queued(linger-time.Millisecond) == 0 {
			t.Error("a later write did not wait for others")
		}
		if n := queued(time.Millisecond); n > 0 {
			t.Errorf("%d writes still wait", n)
		}
		must(t, s.Append(ctx, twoEvents("u", 0)))
		past(beginLinger)
		must(t, s.Append(ctx, twoEvents("v", 0)))
		if queued(2*beginLinger) == 0 {
			t.Error("one of many beginnings did not wait for others")
		}
		if n := queued(linger); n > 0 {
			t.Errorf("%d writes of beginnings still wait", n)
		}
		past(linger)
		kept := twoEvents("t", 4)
		kept.Thread.Purpose = session.PurposeKept
		must(t, s.Append(ctx, kept))
		if n := queued(beginLinger); n > 0 {
			t.Errorf("%d writes of what upstream keeps still wait", n)
		}
	})
}

// TestAppendDoesNotWaitForAPage: appends do not wait while a page of a log is decoded.
func TestAppendDoesNotWaitForAPage(t *testing.T) {
	s, ctx := start(t, Options{Content: true}), t.Context()
	const entries = 5000
	b := session.Batch{Thread: session.Thread{ID: "long", Len: entries}}
	for range entries {
		b.Events = append(b.Events, session.Event{Kind: session.User, Payload: []byte("x")})
	}
	must(t, s.Append(ctx, b))
	must(t, s.flush(ctx))
	page := make(chan error, 1)
	go func() { page <- second(s.Events(ctx, "long", 1, entries)) }()
	for len(page) == 0 && s.mu.TryLock() {
		s.mu.Unlock() // Events has not begun
	}
	for at := 0; ; at += 2 {
		select {
		case err := <-page:
			if must(t, err); at < 20 {
				t.Errorf("%d events were written while a page was read", at)
			}
			return
		default:
			must(t, s.Append(ctx, twoEvents("t", at)))
		}
	}
}

func TestCondenseWaitsForTheDisk(t *testing.T) {
	s := start(t, Options{})
	release := hold(t, s)
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := second(s.Condense(ctx, "t", session.Condensation{})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	must(t, second(s.Condense(t.Context(), "t", session.Condensation{})))
}

func TestFullQueue(t *testing.T) {
	s := start(t, Options{})
	s.maxQueued = 4096
	release := hold(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var err error
	at := 0
	for ; err == nil && at < 1000; at += 2 {
		err = s.Append(ctx, twoEvents("t", at))
	}
	if !errors.Is(err, session.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, session.ErrUnavailable)
	}
	waiting := make(chan error)
	go func() { waiting <- s.Append(t.Context(), twoEvents("t", at-2)) }()
	release()
	must(t, <-waiting)
}

// TestFailedCommit: writes that build on a failed commit are lost with it, later calls wait for their commit, and the store recovers.
func TestFailedCommit(t *testing.T) {
	s, ctx := start(t, Options{}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	must(t, second(s.Condense(ctx, "t", session.Condensation{})))
	s.mu.Lock()
	s.pending.queued[places.key("")] = []byte("bbolt refuses an empty key")
	s.mu.Unlock()
	err := second(s.Condense(ctx, "t", session.Condensation{}))
	if !errors.Is(err, session.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, session.ErrUnavailable)
	}
	if err := s.Ping(ctx); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("ping: %v, want %v", err, session.ErrUnavailable)
	}
	thread, err := s.Thread(ctx, "t")
	must(t, err)
	if thread.Seq != 3 || len(thread.Condensations) != 1 {
		t.Errorf("the failed condensation is still there: %+v", thread)
	}
	must(t, s.Append(ctx, twoEvents("t", 2))) // waits, and succeeds
	must(t, s.Ping(ctx))
	must(t, s.db.View(func(tx *bolt.Tx) error {
		if tx.Bucket(events.name()).Get([]byte(events.entry("t", 5)[1:])) == nil {
			t.Error("the append returned before it was on disk")
		}
		return nil
	}))
}

// TestLostWithFailedCommit: what is queued while a commit fails builds on it, so it is lost too, and waiting callers get
// the error.
func TestLostWithFailedCommit(t *testing.T) {
	s, ctx := start(t, Options{}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	must(t, second(s.Condense(ctx, "t", session.Condensation{})))
	release := hold(t, s)
	failing := make(chan error, 1)
	go func() {
		failing <- s.change(ctx, true, func(c *change) error {
			c.put(places.key(""), []byte("bbolt refuses an empty key"))
			return appendBatch(c, twoEvents("t", 2), nil)
		})
	}()
	for len(committing(s)) == 0 {
		runtime.Gosched()
	}
	must(t, s.Append(ctx, twoEvents("t", 4)))
	release()
	if err := <-failing; !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, session.ErrUnavailable)
	}
	thread, err := s.Thread(ctx, "t")
	must(t, err)
	if thread.Len != 2 {
		t.Errorf("the thread is at %d, want 2: what it was built on is lost", thread.Len)
	}
}

func committing(s *Store) map[string][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pending.committing
}

// TestBurstIsOneCommit: a burst costs one fsync.
func TestBurstIsOneCommit(t *testing.T) {
	s := start(t, Options{})
	release := hold(t, s)
	must(t, s.Append(t.Context(), twoEvents("t", 0))) // the writer takes this one and waits for the disk
	begin := s.db.Stats()
	before := begin.TxStats.GetWrite()
	for at := 2; at < 2000; at += 2 {
		must(t, s.Append(t.Context(), twoEvents("t", at)))
	}
	release()
	must(t, second(s.Condense(t.Context(), "t", session.Condensation{})))
	end := s.db.Stats()
	if writes := end.TxStats.GetWrite() - before; writes > 1000 {
		t.Errorf("%d pages were written for 1000 appends", writes)
	}
}

func TestLockExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{})
		defer s.Close()
		must(t, second(s.Lock(t.Context(), "t", time.Minute)))
		time.Sleep(time.Minute - 1)
		if err := second(s.Lock(t.Context(), "t", time.Minute)); !errors.Is(err, session.ErrLocked) {
			t.Errorf("a little too early: %v", err)
		}
		time.Sleep(time.Nanosecond)
		must(t, second(s.Lock(t.Context(), "t", time.Minute)))
	})
}
