package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestServerErrors: while the server answers with an error, the store is unavailable. It is available as soon as the error is over.
func TestServerErrors(t *testing.T) {
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	for _, excuse := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"OOM command not allowed when used memory > 'maxmemory'.", "CLUSTERDOWN The cluster is down", "MOVED 3999 127.0.0.1:1",
		"MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required.", "BUSY Redis is busy running a script.",
	} {
		t.Run(strings.Fields(excuse)[0], func(t *testing.T) {
			server.SetError(excuse)
			unavailable(t, second(s.Find(ctx, []session.Hash{{1}, {2}}, "t")))
			unavailable(t, second(s.Thread(ctx, "t")))
			unavailable(t, s.Append(ctx, twoEvents("t", 2)))
			unavailable(t, second(s.Condense(ctx, "t", session.Condensation{})))
			unavailable(t, second(s.Lock(ctx, "t", time.Second)))
			unavailable(t, s.Ping(ctx))
			server.SetError("")
			must(t, second(s.Thread(ctx, "t")))
		})
	}
}

func TestKilledServer(t *testing.T) {
	server := sessiontest.StartRedis(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr}, Timeout: 300 * time.Millisecond}), t.Context()
	must(t, s.Ping(ctx))
	must(t, s.Append(ctx, twoEvents("t", 0)))
	c, err := s.Condense(ctx, "t", session.Condensation{Summary: "kept"})
	must(t, err)

	server.Kill()
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for range 20 {
		unavailable(t, second(s.Find(bounded, []session.Hash{{1}}, "t")))
		unavailable(t, s.Append(bounded, twoEvents("t", 2)))
	}
	must(t, bounded.Err())

	server.Start()
	sessiontest.Eventually(t, "the store works again", func() error { return s.Append(ctx, twoEvents("t", 2)) })
	text, err := s.Summary(ctx, c.ID)
	must(t, err)
	if text != "kept" {
		t.Errorf("the summary is %q", text)
	}
}

// TestKilledNode: losing a node of a Cluster makes only its slots unavailable.
func TestKilledNode(t *testing.T) {
	quick.Skip(t)
	cluster := sessiontest.StartCluster(t)
	s, ctx := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, Timeout: 300 * time.Millisecond}), t.Context()
	ids := []session.ThreadID{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range ids {
		must(t, s.Append(ctx, twoEvents(id, 0)))
	}
	cluster.Nodes[1].Kill()
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lost := 0
	for _, id := range ids {
		if err := second(s.Thread(bounded, id)); err != nil {
			unavailable(t, err)
			lost++
		}
	}
	if lost == 0 {
		t.Error("no thread was lost with its node")
	}
	must(t, bounded.Err())
	cluster.Nodes[1].Start()
	for _, id := range ids {
		sessiontest.Eventually(t, "the thread is there again", func() error { return second(s.Thread(ctx, id)) })
	}
}

func TestServerAway(t *testing.T) {
	s := start(t, Options{Addrs: []string{"127.0.0.1:1"}, Timeout: time.Second})
	unavailable(t, s.Ping(t.Context()))
	unavailable(t, second(s.Session(t.Context(), "s")))
}

func TestWrongPassword(t *testing.T) {
	const right, wrong = "correct-horse", "battery-staple"
	server := sessiontest.StartRedis(t, "--requirepass", right, "--user", "agent", "on", ">"+right, "~*", "&*", "+@all")
	for _, o := range []Options{{Password: wrong}, {Username: "agent", Password: wrong}, {Username: "nobody", Password: wrong}, {}} {
		o.Addrs = []string{server.Addr}
		s := start(t, o)
		for _, err := range []error{s.Ping(t.Context()), s.Append(t.Context(), twoEvents("t", 0))} {
			unavailable(t, err)
			if strings.Contains(err.Error(), wrong) {
				t.Errorf("the error contains the password: %v", err)
			}
		}
	}
	for _, o := range []Options{{Password: right}, {Username: "agent", Password: right, DB: 2}} {
		o.Addrs = []string{server.Addr}
		must(t, start(t, o).Append(t.Context(), twoEvents(session.ThreadID("t"+o.Username), 0)))
	}
}

// TestScriptsFlushed: a server that lost its scripts gets them again.
func TestScriptsFlushed(t *testing.T) {
	server := sessiontest.StartRedis(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr}}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	_, err := sessiontest.Command(server.Addr, "SCRIPT", "FLUSH")
	must(t, err)
	must(t, s.Append(ctx, twoEvents("t", 2)))
}

// TestLeaving: a caller that gives up does not count as a failure of the server, unless it has waited for as long as a read
// may take.
func TestLeaving(t *testing.T) {
	for _, c := range []struct {
		name            string
		timeout, leaves time.Duration
		want            bool
	}{
		{"early", time.Hour, 20 * time.Millisecond, true},
		{"late", 500 * time.Millisecond, 750 * time.Millisecond, false}, // a write may take twice as long
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, Options{Addrs: []string{blackHole(t)}, Timeout: c.timeout, Rest: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
			defer cancel()
			if err := s.Append(ctx, twoEvents("t", 0)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, session.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			if got := s.under.breaker.allow(); got != c.want {
				t.Errorf("calls may go out: %v, want %v", got, c.want)
			}
		})
	}
}

// TestEvictedLog: evicted entries are missing, and the others keep their numbers.
func TestEvictedLog(t *testing.T) {
	server := miniredis.RunT(t)
	s, ctx := start(t, Options{Addrs: []string{server.Addr()}}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	server.Del(s.log("t"))
	must(t, s.Append(ctx, twoEvents("t", 2)))
	events, err := s.Events(ctx, "t", 1, 10)
	must(t, err)
	if len(events) != 2 || events[0].Seq != 3 || events[0].Pos != 3 {
		t.Errorf("got %+v", events)
	}
	server.Del(s.thread("t"))
	must(t, s.Append(ctx, twoEvents("t", 0)))
	events, err = s.Events(ctx, "t", 1, 10)
	must(t, err)
	log, err := server.List(s.log("t"))
	must(t, err)
	if len(events) != 2 || len(log) != 2 || events[0].Seq != 1 || events[0].Pos != 1 {
		t.Errorf("got %+v of %d", events, len(log))
	}
}

// TestForgetBegunAgain: deleting a session of a Cluster succeeds even if all its threads begin again before late writes are
// deleted.
func TestForgetBegunAgain(t *testing.T) {
	quick.Skip(t)
	s, ctx := start(t, Options{Addrs: sessiontest.StartCluster(t).Addrs(), Cluster: true, Timeout: 5 * time.Second}), t.Context()
	s.under.lateWrites = time.Second
	must(t, s.Append(ctx, twoEvents("t", 0)))
	forgotten := make(chan error)
	go func() { forgotten <- s.Forget(ctx, "s") }()
	sessiontest.Eventually(t, "the thread is deleted", func() error {
		if err := second(s.Thread(ctx, "t")); !errors.Is(err, session.ErrNotFound) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
	sessiontest.Eventually(t, "the thread begins again", func() error { return s.Append(ctx, twoEvents("t", 0)) }) // a deletion may be under way
	must(t, <-forgotten)
}
