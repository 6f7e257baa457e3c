package boltstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const ttl = 24 * time.Hour

// past lets d pass and the sweeper finish.
func past(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestSweepDeletesThreadsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		must(t, second(s.Secret(ctx, session.Secret("secret"))))
		for at := 0; at < 200; at += 2 {
			must(t, s.Append(ctx, twoEvents("old", at)))
		}
		c, err := s.Condense(ctx, "old", session.Condensation{Summary: "x"})
		must(t, err)
		past(ttl / 2)
		must(t, s.Append(ctx, twoEvents("new", 0)))
		must(t, s.Mark(ctx, session.Place{Thread: "new"}, session.Traces{Lasting: []session.Hash{chain("old", -1)}}))
		past(ttl/2 + 2*time.Hour)

		for _, err := range []error{second(s.Thread(ctx, "old")), second(s.Summary(ctx, c.ID)), second(s.Events(ctx, "old", 1, 1))} {
			missing(t, err)
		}
		must(t, second(s.Events(ctx, "new", 1, 1)))
		ses, err := s.Session(ctx, "s")
		must(t, err)
		if len(ses.Threads) != 1 || ses.Threads[0] != "new" {
			t.Errorf("the session's threads are %q", ses.Threads)
		}
		traced, err := s.Trace(ctx, []session.Hash{chain("old", -1)})
		must(t, err)
		if traced[0].Thread != "new" {
			t.Errorf("a trace that points to a living thread is gone: %+v", traced)
		}
		past(ttl)
		left(t, s, 3) // format, size and secret
	})
}

func missing(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want %v", err, session.ErrNotFound)
	}
}

// left checks the number of records in the file.
func left(t *testing.T, s *Store, want int) {
	t.Helper()
	if n := len(Dump(t, s)); n != want {
		t.Errorf("%d records are left, want %d", n, want)
	}
}

func TestSweepKeepsWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		must(t, s.Append(ctx, twoEvents("t", 0)))
		for range 5 {
			past(ttl * 3 / 4)
			must(t, second(s.Condense(ctx, "t", session.Condensation{}))) // counts as a write
		}
		events, err := s.Events(ctx, "t", 1, 10)
		must(t, err)
		if len(events) != 7 {
			t.Errorf("%d events are left of 7", len(events))
		}
	})
}

func TestSweepKeepsAncestors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		must(t, s.Append(ctx, twoEvents("grandparent", 0)))
		must(t, s.Append(ctx, twoEvents("other", 0)))
		for _, fork := range [][2]session.ThreadID{{"parent", "grandparent"}, {"child", "parent"}} {
			b := twoEvents(fork[0], 2)
			b.Thread.Parent, b.Thread.ForkAt = fork[1], 2
			must(t, s.Append(ctx, b))
		}
		for at := 4; at < 10; at += 2 {
			past(ttl / 2)
			must(t, s.Append(ctx, twoEvents2("child", "parent", at)))
		}
		must(t, second(s.Thread(ctx, "parent")))
		must(t, second(s.Events(ctx, "grandparent", 1, 1)))
		missing(t, second(s.Thread(ctx, "other")))
		past(2 * ttl)
		left(t, s, 2) // format and size
	})
}

// TestSweepKeepsContent: a thread that stores another one's content lives as long as that one.
func TestSweepKeepsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		must(t, s.Append(ctx, twoEvents("holder", 0)))
		must(t, s.Append(ctx, twoEvents("other", 0)))
		for at := 0; at < 8; at += 2 {
			b := twoEvents("t", at)
			b.Thread.Shares = []session.ThreadID{"holder"}
			must(t, s.Append(ctx, b))
			past(ttl / 2)
		}
		must(t, second(s.Events(ctx, "holder", 1, 1)))
		missing(t, second(s.Thread(ctx, "other")))
		past(2 * ttl)
		left(t, s, 2) // format and size
	})
}

// TestSweepKeepsOnlySharedContent: if each thread shares content of the one before, the older ones still expire, except for those that a
// fork's parent shares.
func TestSweepKeepsOnlySharedContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		begin := func(id session.ThreadID, shares ...session.ThreadID) session.Batch {
			b := twoEvents(id, 0)
			b.Thread.Shares = shares
			must(t, s.Append(ctx, b))
			past(ttl / 3)
			return b
		}
		begin("1")
		begin("2", "1")
		begin("3", "2")
		fork := twoEvents2("fork", "3", 2)
		fork.Thread.Shares = []session.ThreadID{"3"}
		for range 5 {
			must(t, s.Append(ctx, fork))
			fork.At, fork.Thread.Len = fork.At+2, fork.Thread.Len+2
			past(ttl / 3)
		}
		must(t, second(s.Thread(ctx, "3")))
		must(t, second(s.Thread(ctx, "2")))
		missing(t, second(s.Thread(ctx, "1")))
		past(2 * ttl)
		left(t, s, 2) // format and size
	})
}

// twoEvents2 is twoEvents for a fork.
func twoEvents2(id, parent session.ThreadID, at int) session.Batch {
	b := twoEvents(id, at)
	b.Thread.Parent, b.Thread.ForkAt = parent, 2
	return b
}

// TestSweepOfALongThread: a long thread is deleted completely, with everything that points to it.
func TestSweepOfALongThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{TTL: ttl}), t.Context()
		defer s.Close()
		b := session.Batch{Thread: session.Thread{ID: "t"}}
		for pos := range 8000 {
			b.Events = append(b.Events, session.Event{Pos: pos, Kind: session.User, Chain: chain("t", pos)})
			b.Traces.Lasting = append(b.Traces.Lasting, chain("x", pos))
			b.Places = append(b.Places, session.IndexEntry{Hash: chain("t", pos), Place: session.Place{Thread: "t", Pos: pos}})
		}
		must(t, s.Append(ctx, b))
		past(ttl + 2*time.Hour)
		left(t, s, 2) // format and size
	})
}

func TestNeverSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{}), t.Context()
		defer s.Close()
		must(t, s.Append(ctx, twoEvents("t", 0)))
		past(1000 * ttl)
		must(t, second(s.Thread(ctx, "t")))
	})
}
