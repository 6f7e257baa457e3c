package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// atOnce makes n concurrent calls and returns their errors.
func atOnce(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	return errs
}

// TestSlow: a server that takes 100 ms for every answer is slow, not unavailable. A hundred concurrent calls succeed, even
// if they have to open connections first.
func TestSlow(t *testing.T) {
	t.Parallel()
	relay := sessiontest.StartRelay(t, sessiontest.StartRedis(t).Addr)
	relay.Delay(100 * time.Millisecond)
	s, ctx := start(t, Options{Addrs: []string{relay.Addr}, Timeout: 5 * time.Second}), t.Context()
	for _, err := range atOnce(100, func(i int) error { return s.Append(ctx, twoEvents(session.ThreadID(fmt.Sprint("t", i)), 0)) }) {
		must(t, err)
	}
	for _, err := range atOnce(100, func(i int) error {
		found, err := s.Find(ctx, []session.Hash{{1, 0, 0, 7}}, session.ThreadID(fmt.Sprint("t", i)))
		if err == nil && found.Hinted == nil {
			err = session.ErrNotFound
		}
		return err
	}) {
		must(t, err)
	}
	if !s.under.breaker.allow() {
		t.Error("calls are held back")
	}
}

// TestDefaultsAreForSlowServers: the default deadline leaves room for a new connection and a call of 100 ms each.
func TestDefaultsAreForSlowServers(t *testing.T) {
	if least := 4 * 100 * time.Millisecond; defaultTimeout < least || defaultRest > defaultTimeout {
		t.Errorf("a timeout of %v, want at least %v; a rest of %v", defaultTimeout, least, defaultRest)
	}
}

// silent is a way in which a server exists but does not answer.
type silent struct{ begin, end func() }

// TestSilent: calls to a server that does not answer end with the store's own deadline. The first few wait for it, the
// others are not sent. When the server answers again, calls succeed without a restart.
func TestSilent(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T) (addr string, way silent){
		"frozen": func(t *testing.T) (string, silent) {
			server := sessiontest.StartRedis(t)
			return server.Addr, silent{server.Freeze, server.Thaw}
		},
		"black hole": func(t *testing.T) (string, silent) {
			relay := sessiontest.StartRelay(t, sessiontest.StartRedis(t).Addr)
			return relay.Addr, silent{func() { relay.Swallow(true) }, func() { relay.Swallow(false) }}
		},
		"too slow": func(t *testing.T) (string, silent) {
			relay := sessiontest.StartRelay(t, sessiontest.StartRedis(t).Addr)
			return relay.Addr, silent{func() { relay.Delay(time.Second) }, func() { relay.Delay(0) }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, way := make(t)
			s, count := start(t, Options{Addrs: []string{addr}, Timeout: 200 * time.Millisecond, Rest: 20 * time.Millisecond}), &trips{}
			s.under.starved = func() bool { return false }               // tests that run beside this one keep the process busy
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends the test if the store has no deadline
			defer cancel()
			sessiontest.Eventually(t, "the server answers", func() error { return s.Append(ctx, twoEvents("t", 0)) })
			way.begin()
			for _, err := range atOnce(64, func(int) error { return second(s.Thread(ctx, "t")) }) {
				unavailable(t, err)
			}
			if s.under.breaker.allow() {
				t.Fatal("calls still go out")
			}
			s.under.client.AddHook(count)
			for range 100 {
				unavailable(t, second(s.Find(ctx, []session.Hash{{1}}, "t")))
			}
			if n := count.calls.Load(); n > 0 {
				t.Errorf("%d calls went out", n)
			}
			must(t, ctx.Err())
			way.end()
			sessiontest.Eventually(t, "it answers again", func() error { return second(s.Thread(ctx, "t")) })
			sessiontest.Eventually(t, "it takes events again", func() error {
				err := s.Append(ctx, twoEvents("t", 2))
				if errors.Is(err, session.ErrStale) { // the server had taken them, but its answer came too late on a busy machine
					return nil
				}
				return err
			})
		})
	}
}

// TestSilentMaster: the probe detects one silent master of a Cluster, whichever it is.
func TestSilentMaster(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cluster := sessiontest.StartCluster(t, "--cluster-node-timeout", "30000")
	s, ctx := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, Timeout: 300 * time.Millisecond, Rest: 20 * time.Millisecond}), t.Context()
	sessiontest.Eventually(t, "the cluster answers", func() error { return s.Ping(ctx) })
	for _, node := range cluster.Nodes {
		node.Freeze()
		for range 10 {
			if s.under.probe(ctx) {
				t.Errorf("a probe was answered while %s is silent", node.Addr)
			}
		}
		node.Thaw()
		sessiontest.Eventually(t, "it answers again", func() error { return s.Ping(ctx) })
	}
}

// TestCut resets the connection at some byte of a reply. The call is repeated on another connection, and what reached the
// server the first time is not written twice.
func TestCut(t *testing.T) {
	t.Parallel()
	relay := sessiontest.StartRelay(t, sessiontest.StartRedis(t).Addr)
	s, ctx := start(t, Options{Addrs: []string{relay.Addr}, Timeout: 10 * time.Second}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	must(t, second(s.Condense(ctx, "t", session.Condensation{Summary: "first"})))
	lease, err := s.Lock(ctx, "t", time.Minute)
	must(t, err)
	lease.Release()
	hashes := []session.Hash{{1, 0, 0, 7}, {2, 0, 0, 7}, {3}}
	at := 2
	for cut := 1; cut < 100; cut += 7 {
		relay.CutAfter(cut)
		found, err := s.Find(ctx, hashes, "t")
		if err != nil || found.Hinted == nil || !found.Places[1].Known() {
			t.Fatalf("cut after %d: found %+v, %v", cut, found, err)
		}
	}
	for cut := 1; cut < 12; cut += 2 { // falls into the first or the second reply
		relay.CutAfter(cut)
		must(t, s.Append(ctx, twoEvents("t", at)))
		at += 2
	}
	for cut := range 3 {
		relay.CutAfter(cut + 1)
		c, err := s.Condense(ctx, "t", session.Condensation{Summary: fmt.Sprint("cut ", cut)})
		must(t, err)
		text, err := s.Summary(ctx, c.ID)
		if must(t, err); text != fmt.Sprint("cut ", cut) {
			t.Errorf("condensation %d has the summary %q", cut, text)
		}
	}
	relay.CutAfter(1)
	lease, err = s.Lock(ctx, "t", time.Minute)
	must(t, err)
	if err := second(s.Lock(ctx, "t", time.Minute)); !errors.Is(err, session.ErrLocked) {
		t.Errorf("got %v, want %v", err, session.ErrLocked)
	}
	lease.Release()
	must(t, second(s.Lock(ctx, "t", time.Minute)))
	thread, err := s.Thread(ctx, "t")
	must(t, err)
	if thread.Len != at || thread.Seq != uint64(at)+4 || len(thread.Condensations) != 4 {
		t.Errorf("the thread has %d positions in %d entries and %d condensations, want %d, %d and 4",
			thread.Len, thread.Seq, len(thread.Condensations), at, at+4)
	}
	events, err := s.Events(ctx, "t", 1, 1000)
	must(t, err)
	if len(events) != at+4 {
		t.Errorf("the log has %d entries, want %d", len(events), at+4)
	}
}
