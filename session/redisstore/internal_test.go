package redisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func twoEvents(id session.ThreadID, at int) session.Batch {
	b := session.Batch{Thread: session.Thread{ID: id, Session: "s", Len: at + 2}, At: at, Traces: session.Traces{Lasting: []session.Hash{{9}}}}
	for pos := at + 1; pos <= at+2; pos++ {
		h := session.Hash{byte(pos), byte(pos >> 8), byte(pos >> 16), 7}
		b.Events = append(b.Events, session.Event{Pos: pos, Kind: session.User, Chain: h, Payload: payload})
		b.Places = append(b.Places, session.IndexEntry{Hash: h, Place: session.Place{Thread: id, Session: "s", Pos: pos, Encoding: "o200k_base"}})
	}
	return b
}

// payload has a typical size.
var payload = []byte(`{"role":"assistant","content":"` + string(make([]byte, 900)) + `"}`)

// trips counts the round trips of single commands and pipelines, except those that set up a connection. calls leaves out
// probes too.
type trips struct{ n, calls atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" {
			c.n.Add(1)
		}
		if cmd.Name() != "hello" && cmd.Name() != "ping" {
			c.calls.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "hello" {
			c.n.Add(1)
			c.calls.Add(1)
		}
		return next(ctx, cmds)
	}
}

func TestRoundTrips(t *testing.T) {
	quick.Skip(t)
	cluster := sessiontest.StartCluster(t)
	for name, o := range map[string]Options{
		"server":  {Addrs: []string{miniredis.RunT(t).Addr()}},
		"cluster": {Addrs: cluster.Addrs(), Cluster: true},
	} {
		t.Run(name, func(t *testing.T) { countTrips(t, name, o) })
	}
}

func countTrips(t *testing.T, name string, o Options) {
	o.Timeout = 10 * time.Second
	s, count, ctx := start(t, o), &trips{}, t.Context()
	must(t, s.Ping(ctx)) // looks for keys of an earlier version
	must(t, s.Append(ctx, twoEvents("warm", 0)))
	_, err := s.Condense(ctx, "warm", session.Condensation{Summary: "x"})
	must(t, err)
	_, err = s.Events(ctx, "warm", 1, 1)
	must(t, err)
	lease, err := s.Lock(ctx, "warm", time.Minute)
	must(t, err)
	lease.Release()
	must(t, s.Mark(ctx, session.Place{Thread: "warm"}, session.Traces{Lasting: []session.Hash{{1}}}))
	s.under.client.AddHook(count)
	f := func(what string, most int64, call func() error) {
		t.Helper()
		before := count.n.Load()
		must(t, call())
		if n := count.n.Load() - before; n > most {
			t.Errorf("%s: %d round trips, want at most %d", what, n, most)
		}
	}
	hashes := make([]session.Hash, 16)
	for i := range hashes {
		hashes[i] = session.Hash{byte(i)}
	}
	// Other nodes of a Cluster do not know the scripts yet, so all calls use the same thread.
	appends := int64(1)
	if name == "cluster" {
		appends = 2
	}
	f("append", appends, func() error { return s.Append(ctx, twoEvents("warm", 2)) })
	fork := twoEvents("warm-fork", 4)
	fork.Thread.Parent, fork.Thread.ForkAt = "warm", 4
	if name == "server" { // other nodes of a Cluster do not know the script yet
		f("begin a fork", 3, func() error { return s.Append(ctx, fork) })
	}
	f("find", 1, func() error { _, err := s.Find(ctx, hashes, "warm"); return err })
	f("find nothing", 0, func() error { _, err := s.Find(ctx, nil, ""); return err })
	f("thread", 1, func() error { _, err := s.Thread(ctx, "warm"); return err })
	f("events", 1, func() error { _, err := s.Events(ctx, "warm", 1, 10); return err })
	f("condense", 1, func() error { _, err := s.Condense(ctx, "warm", session.Condensation{}); return err })
	f("summary", 1, func() error { _, err := s.Summary(ctx, session.CondensationID{Thread: "warm", Seq: 3}); return err })
	f("trace", 1, func() error { _, err := s.Trace(ctx, hashes); return err })
	f("mark", 1, func() error { return s.Mark(ctx, session.Place{Thread: "warm"}, session.Traces{Lasting: hashes}) })
	f("answers", 1, func() error { _, err := s.Answers(ctx, "warm"); return err })
	f("secret", 1, func() error { _, err := s.Secret(ctx, session.Secret("x")); return err })
	f("session", 2, func() error { _, err := s.Session(ctx, "s"); return err })
	f("lock", 1, func() error { _, err := s.Lock(ctx, "warm", time.Minute); return err })
}

// TestBlackHole: a server that accepts connections and never answers costs one deadline, and after that nothing.
func TestBlackHole(t *testing.T) {
	hole := blackHole(t)
	for name, o := range map[string]Options{
		"server":   {Addrs: []string{hole}},
		"sentinel": {Addrs: []string{hole}, MasterName: "m"},
		"cluster":  {Addrs: []string{hole}, Cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Timeout, o.Rest = 50*time.Millisecond, time.Hour
			s, count := start(t, o), &trips{}
			s.under.client.AddHook(count)
			// Ends the test if the store has no deadline.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			unavailable(t, second(s.Thread(ctx, "t")))
			for range 100 {
				unavailable(t, s.Append(ctx, twoEvents("t", 0)))
				unavailable(t, second(s.Find(ctx, []session.Hash{{1}}, "t")))
			}
			must(t, s.Close()) // stops the probe too
			if n := count.n.Load(); n > 2 {
				t.Errorf("%d calls went out, want one and at most one probe", n)
			}
			must(t, ctx.Err())
		})
	}
}

func blackHole(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return l.Addr().String()
}

func second[T any](_ T, err error) error { return err }

func unavailable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, session.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, session.ErrUnavailable)
	}
}
