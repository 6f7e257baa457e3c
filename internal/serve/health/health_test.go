package health

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func fixed(name string, state State, detail string) Check {
	return Check{Name: name, Look: func(context.Context) (State, string) { return state, detail }}
}

func TestProbe(t *testing.T) {
	f := func(checks []Check, status int, body string) {
		t.Helper()
		mux := http.NewServeMux()
		Probes{Ready: checks}.Register(mux)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ReadyPath, nil))
		if w.Code != status || strings.TrimSpace(w.Body.String()) != body {
			t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, body)
		}
	}
	f(nil, 200, `{"status":"ok","checks":{}}`)
	f([]Check{fixed("a", OK, "")}, 200, `{"status":"ok","checks":{"a":{"status":"ok"}}}`)
	f([]Check{fixed("a", Degraded, "slow"), fixed("b", OK, "")}, 200,
		`{"status":"degraded","checks":{"a":{"status":"degraded","detail":"slow"},"b":{"status":"ok"}}}`)
	f([]Check{fixed("a", Failed, ""), fixed("b", Degraded, "")}, 503,
		`{"status":"failed","checks":{"a":{"status":"failed"},"b":{"status":"degraded"}}}`)
	f([]Check{fixed("a", Degraded, ""), fixed("b", Failed, "")}, 503,
		`{"status":"failed","checks":{"a":{"status":"degraded"},"b":{"status":"failed"}}}`)
}

func TestPathsAndMethods(t *testing.T) {
	mux := http.NewServeMux()
	Probes{Live: []Check{fixed("l", OK, "")}, Startup: []Check{fixed("s", Failed, "")}}.Register(mux)
	f := func(method, path string, status int) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != status {
			t.Errorf("%s %s: %d, want %d", method, path, w.Code, status)
		}
	}
	f(http.MethodGet, "/livez", 200)
	f(http.MethodGet, "/healthz", 200)
	f(http.MethodHead, "/livez", 200)
	f(http.MethodPost, "/livez", 405)
	f(http.MethodGet, "/startupz", 503)
	f(http.MethodGet, "/readyz", 200)
}

// TestPulse checks two ports: one is served, and on the other the kernel establishes connections that are never accepted.
func TestPulse(t *testing.T) {
	served, dead := listen(t), listen(t)
	go func() {
		for {
			conn, err := served.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	const limit = 200 * time.Millisecond
	well, ill := startPulse(served.Addr().String(), limit/10, limit), startPulse(dead.Addr().String(), limit/10, limit)
	defer well.Stop()
	defer ill.Stop()
	await(t, "the dead port is noticed", func() bool { state, _ := ill.Look(t.Context()); return state == Failed })
	await(t, "the served one is well", func() bool { state, _ := well.Look(t.Context()); return state == OK })
	if err := probeOnce(t.Context(), served.Addr().String(), time.Minute); err != nil {
		t.Error(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func await(t *testing.T, what string, good func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if good() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

func TestReachable(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		if got := Reachable(addr); got != want {
			t.Errorf("%q for %q, want %q", got, addr, want)
		}
	}
	f(":9090", "127.0.0.1:9090")
	f("0.0.0.0:9090", "127.0.0.1:9090")
	f("[::]:9090", "127.0.0.1:9090")
	f("10.1.2.3:9090", "10.1.2.3:9090")
	f("[::1]:9090", "[::1]:9090")
	f("localhost:9090", "localhost:9090")
}

func TestAsk(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == LivePath {
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer front.Close()
	addr := front.Listener.Addr().String()
	if _, err := Ask(t.Context(), addr, LivePath); err != nil {
		t.Error(err)
	}
	if answer, err := Ask(t.Context(), addr, ReadyPath); err == nil || answer != "not yet" {
		t.Errorf("%q, %v", answer, err)
	}
}
