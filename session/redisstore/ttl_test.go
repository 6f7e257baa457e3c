package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
)

func TestExpiry(t *testing.T) {
	const ttl = time.Hour
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}, TTL: ttl}), t.Context()
	_, err := s.Secret(ctx, session.Secret("secret"))
	must(t, err)
	must(t, s.Append(ctx, twoEvents("t", 0)))
	server.FastForward(ttl / 2)
	c, err := s.Condense(ctx, "t", session.Condensation{Summary: "x"}) // counts as a write
	must(t, err)
	server.FastForward(ttl/2 + time.Minute)
	must(t, second(s.Summary(ctx, c.ID)))
	events, err := s.Events(ctx, "t", 1, 10)
	must(t, err)
	if len(events) != 3 {
		t.Errorf("%d events are left of 3", len(events))
	}
	server.FastForward(ttl / 2)
	for _, err := range []error{second(s.Thread(ctx, "t")), second(s.Summary(ctx, c.ID)), second(s.Events(ctx, "t", 1, 1)), second(s.Session(ctx, "s"))} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v, want %v", err, session.ErrNotFound)
		}
	}
	if keys := server.Keys(); len(keys) != 1 || keys[0] != s.under.keys.record(records.SecretKey) {
		t.Errorf("keys left: %q, want the secret only", keys)
	}
}

// TestForkKeepsParent: a fork's parent lives as long as the fork, a thread that stores another one's content as long as that one, and a
// session outlives its expired threads.
func TestForkKeepsParent(t *testing.T) {
	const ttl = time.Hour
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}, TTL: ttl}), t.Context()
	must(t, s.Append(ctx, twoEvents("grandparent", 0)))
	must(t, s.Append(ctx, twoEvents("parent", 0)))
	must(t, s.Append(ctx, twoEvents("other", 0)))
	c, err := s.Condense(ctx, "grandparent", session.Condensation{Summary: "inherited"})
	must(t, err)
	fork := twoEvents("fork", 2)
	fork.Thread.Parent, fork.Thread.ForkAt, fork.Thread.Condensations = "parent", 2, []session.Condensation{c}
	must(t, s.Append(ctx, twoEvents("holder", 0)))
	fork.Thread.Shares = []session.ThreadID{"holder"}
	must(t, s.Append(ctx, fork))
	for at := 4; at < 10; at += 2 {
		server.FastForward(ttl / 2)
		must(t, s.Append(ctx, twoEvents("fork", at)))
	}
	must(t, second(s.Summary(ctx, c.ID)))
	must(t, second(s.Events(ctx, "parent", 1, 1)))
	must(t, second(s.Events(ctx, "holder", 1, 1)))
	ses, err := s.Session(ctx, "s")
	must(t, err)
	if len(ses.Threads) != 4 || ses.Threads[3] != "fork" {
		t.Errorf("threads %q, want those that live", ses.Threads)
	}
}

// TestForkKeepsAllAncestors: a fork keeps all ancestors, even those without a condensation that only its parent was forked
// from.
func TestForkKeepsAllAncestors(t *testing.T) {
	const ttl = time.Hour
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}, TTL: ttl}), t.Context()
	fork := func(id, parent session.ThreadID, forkAt, at int) session.Batch {
		b := twoEvents(id, at)
		b.Thread.Parent, b.Thread.ForkAt = parent, forkAt
		return b
	}
	must(t, s.Append(ctx, twoEvents("first", 0)))
	must(t, s.Append(ctx, twoEvents("other", 0)))
	must(t, s.Append(ctx, fork("second", "first", 2, 2)))
	must(t, s.Append(ctx, fork("third", "second", 4, 4)))
	must(t, s.Append(ctx, fork("fourth", "third", 6, 6)))
	for at := 8; at < 14; at += 2 {
		server.FastForward(ttl / 2)
		must(t, s.Append(ctx, fork("fourth", "third", 6, at)))
	}
	for _, id := range []session.ThreadID{"first", "second", "third", "fourth"} {
		for _, key := range []string{s.thread(id), s.log(id)} {
			if left := server.TTL(key); left < ttl || left > s.under.lease() {
				t.Errorf("%q expires in %v, want %v and not much more", key, left, ttl)
			}
		}
	}
	if err := second(s.Thread(ctx, "other")); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want %v", err, session.ErrNotFound)
	}
}

func TestNoExpiry(t *testing.T) {
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	must(t, second(s.Condense(ctx, "t", session.Condensation{})))
	for _, key := range server.Keys() {
		if ttl := server.TTL(key); ttl != 0 {
			t.Errorf("%q expires in %v", key, ttl)
		}
	}
}

// TestAShorterTTLAppliesToOldThreads: after the TTL was lowered, the next write to a thread shortens the remaining life of the thread and its
// session. Otherwise a lease is renewed only when less than the TTL is left of it.
func TestAShorterTTLAppliesToOldThreads(t *testing.T) {
	server := miniredis.RunT(t)
	open := func(ttl time.Duration) *sessions { return start(t, Options{Addrs: []string{server.Addr()}, TTL: ttl}) }
	long, short, ctx := open(100*time.Hour), open(time.Hour), t.Context()
	must(t, long.Append(ctx, twoEvents("t", 0)))
	keys := append(long.threadKeys("t"), long.session("s"))
	lasts := func(when string, want time.Duration) {
		t.Helper()
		for _, key := range keys {
			if left := server.TTL(key); left != want {
				t.Errorf("%s, %q expires in %v, want %v", when, key, left, want)
			}
		}
	}
	lasts("at first", long.under.lease())
	server.FastForward(long.under.lease() - 100*time.Hour)
	must(t, long.Append(ctx, twoEvents("t", 2)))
	lasts("with its whole TTL left", 100*time.Hour)
	server.FastForward(time.Second)
	must(t, long.Append(ctx, twoEvents("t", 4)))
	lasts("with less left", long.under.lease())
	must(t, short.Append(ctx, twoEvents("t", 6)))
	lasts("with a lower TTL", short.under.lease())
	must(t, short.Append(ctx, twoEvents("t", 8)))
	lasts("again", short.under.lease())
}
