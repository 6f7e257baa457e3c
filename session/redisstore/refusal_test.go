package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// prepared returns a store on a real server with a condensed thread of two messages and a secret.
func prepared(t *testing.T, o Options, args ...string) (*sessiontest.Server, *sessions, session.CondensationID) {
	t.Helper()
	server := sessiontest.StartRedis(t, args...)
	o.Addrs = []string{server.Addr}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s := start(t, o)
	must(t, second(s.Secret(t.Context(), session.Secret("first"))))
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	c, err := s.Condense(t.Context(), "t", session.Condensation{Summary: "kept"})
	must(t, err)
	return server, s, c.ID
}

// wantReads makes every call that only reads, and Secret. None may fail.
func wantReads(t *testing.T, s *sessions, id session.CondensationID) {
	t.Helper()
	found, err := s.Find(t.Context(), []session.Hash{{1, 0, 0, 7}}, "t")
	if err != nil || found.Hinted == nil || !found.Places[0].Known() {
		t.Fatalf("found %+v, %v", found, err)
	}
	text, err := s.Summary(t.Context(), id)
	if err != nil || text != "kept" {
		t.Fatalf("summary %q, %v", text, err)
	}
	must(t, second(s.Events(t.Context(), "t", 1, 10)))
	must(t, second(s.Trace(t.Context(), []session.Hash{{9}})))
	must(t, second(s.Session(t.Context(), "s")))
	secret, err := s.Secret(t.Context(), session.Secret("another"))
	if err != nil || string(secret) != "first" {
		t.Fatalf("secret %q, %v", string(secret), err)
	}
}

// wantNoWrites makes every call that writes. All must fail.
func wantNoWrites(t *testing.T, s *sessions, why string) {
	t.Helper()
	for name, err := range map[string]error{
		"append":   s.Append(t.Context(), twoEvents("t", 2)),
		"begin":    s.Append(t.Context(), twoEvents("u", 0)),
		"condense": second(s.Condense(t.Context(), "t", session.Condensation{Summary: "more"})),
		"mark":     s.Mark(t.Context(), session.Place{Thread: "t"}, session.Traces{Lasting: []session.Hash{{7}}}),
		"lock":     second(s.Lock(t.Context(), "t", time.Minute)),
	} {
		unavailable(t, err)
		if !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v does not say %s", name, err, why)
		}
	}
	if !s.under.breaker.allow() {
		t.Error("calls are held back though each is answered at once")
	}
}

// TestReadOnly: a replica without a master serves reads and refuses writes.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server, s, id := prepared(t, Options{})
	server.Do("REPLICAOF", "127.0.0.1", "1")
	wantReads(t, s, id)
	wantNoWrites(t, s, "READONLY")
	server.Do("REPLICAOF", "NO", "ONE")
	must(t, s.Append(t.Context(), twoEvents("t", 2)))
}

// TestReadOnlyCostsFewConnections: the client closes each connection on which a replica refuses a write. Writes that are refused all the
// time do not open new ones all the time. Reads go on.
func TestReadOnlyCostsFewConnections(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	server, s, id := prepared(t, Options{Rest: time.Hour})
	server.Do("REPLICAOF", "127.0.0.1", "1")
	refused := func() (connections int) {
		before := opened(t, server)
		for range maxConns {
			unavailable(t, s.Append(t.Context(), twoEvents("t", 2)))
		}
		return opened(t, server) - before
	}
	if n := refused(); n < maxConns/2 {
		t.Errorf("%d connections: those to a former master would not all be replaced", n)
	}
	if n := refused(); n > 1+maxTries {
		t.Errorf("%d connections for %d writes", n, maxConns)
	}
	wantReads(t, s, id)
}

// opened returns how many connections a server has accepted.
func opened(t *testing.T, server *sessiontest.Server) (n int) {
	t.Helper()
	info, err := sessiontest.Command(server.Addr, "INFO", "stats")
	must(t, err)
	_, after, _ := strings.Cut(info, "total_connections_received:")
	must(t, second(fmt.Sscan(after, &n)))
	return n
}

// TestOutOfMemory: a full server that does not evict serves reads, and no write is done in part.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server, s, id := prepared(t, Options{}, "--maxmemory-policy", "noeviction")
	server.Do("CONFIG", "SET", "maxmemory", "1")
	wantReads(t, s, id)
	wantNoWrites(t, s, "OOM")
	server.Do("CONFIG", "SET", "maxmemory", "0")
	wantReads(t, s, id)
	thread, err := s.Thread(t.Context(), "t")
	must(t, err)
	if thread.Len != 2 || thread.Seq != 3 || len(thread.Condensations) != 1 {
		t.Errorf("a write was done in part: %+v", thread)
	}
	must(t, s.Append(t.Context(), twoEvents("t", 2)))
}

// TestLoading restarts a server that loads its data slowly. Every call fails at once until the data is loaded.
func TestLoading(t *testing.T) {
	t.Parallel()
	server, s, id := prepared(t, Options{}, "--appendonly", "no", "--loading-process-events-interval-bytes", "1024")
	for i := range 2000 {
		must(t, s.Mark(t.Context(), session.Place{Thread: "t", Session: session.SessionID(strings.Repeat("s", 200))}, session.Traces{Lasting: []session.Hash{{1, 2, byte(i), byte(i >> 8)}}}))
	}
	server.Do("SAVE")
	server.Kill()
	server.Launch("--key-load-delay", "5000") // microseconds for each of 2000 keys
	sessiontest.Eventually(t, "the server loads", func() error {
		_, err := sessiontest.Command(server.Addr, "PING")
		if err == nil || !strings.Contains(err.Error(), "LOADING") {
			return net.ErrClosed
		}
		return nil
	})
	wantNoWrites(t, s, "LOADING")
	for _, err := range []error{second(s.Find(t.Context(), []session.Hash{{1}}, "t")), second(s.Secret(t.Context(), session.Secret("x"))), s.Ping(t.Context())} {
		unavailable(t, err)
	}
	server.Do("CONFIG", "SET", "key-load-delay", "0")
	sessiontest.Eventually(t, "it has its data", func() error { return second(s.Thread(t.Context(), "t")) })
	wantReads(t, s, id)
	must(t, s.Append(t.Context(), twoEvents("t", 2)))
}

// TestTooManyClients: a server that accepts no more connections is unavailable until it does.
func TestTooManyClients(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t)
	other := start(t, Options{Addrs: []string{server.Addr}, Timeout: 5 * time.Second})
	must(t, other.Append(t.Context(), twoEvents("t", 0))) // keeps its connection
	server.Do("CONFIG", "SET", "maxclients", "1")
	s := start(t, Options{Addrs: []string{server.Addr}, Timeout: 5 * time.Second})
	for range 10 { // the server sends the reason and hangs up; which of the two the client sees first varies
		unavailable(t, s.Append(t.Context(), twoEvents("t", 2)))
	}
	must(t, other.Append(t.Context(), twoEvents("t", 2)))
	must(t, other.Close())
	sessiontest.Eventually(t, "there is room again", func() error { return s.Append(t.Context(), twoEvents("t", 4)) })
}

// TestPermissionLost: the error is clear if the user loses a permission or is deleted.
func TestPermissionLost(t *testing.T) {
	t.Parallel()
	const password = "correct-horse"
	server, s, id := prepared(t, Options{Username: "app", Password: password}, "--user", "app", "on", ">"+password, "~*", "&*", "+@all")
	server.Do("ACL", "SETUSER", "app", "-@write")
	wantNoWrites(t, s, "the user lacks a permission")
	server.Do("ACL", "SETUSER", "app", "+@write")
	wantReads(t, s, id)
	server.Do("ACL", "DELUSER", "app") // closes its connections
	for range 3 {
		err := s.Append(t.Context(), twoEvents("t", 2))
		unavailable(t, err)
		if !strings.Contains(err.Error(), "refuses the user name or password") || strings.Contains(err.Error(), password) {
			t.Errorf("got %v", err)
		}
	}
}

// TestEarlierKeysAreRefused: a server whose keys are of an earlier version gives no secret and is not healthy, also if it has no secret because
// that is configured. Once they are deleted, it is used.
func TestEarlierKeysAreRefused(t *testing.T) {
	place := "dp:c:" + strings.Repeat("x", 32)
	for name, key := range map[string]string{"secret": "dp:secret:2", "place": place, "trace": strings.Replace(place, "c", "x", 1)} {
		t.Run(name, func(t *testing.T) {
			server := miniredis.RunT(t)
			must(t, server.Set(key, "a value"))
			s, ctx := start(t, Options{Addrs: []string{server.Addr()}}), t.Context()
			for _, err := range []error{second(s.Secret(ctx, session.Secret("secret"))), s.Ping(ctx)} {
				if !errors.Is(err, session.ErrUnavailable) || !strings.Contains(err.Error(), "earlier version") {
					t.Errorf("got %v", err)
				}
			}
			server.Del(key)
			must(t, s.Append(ctx, twoEvents("t", 0)))
			must(t, start(t, Options{Addrs: []string{server.Addr()}}).Ping(ctx))
		})
	}
}
