package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// plainUpstream answers everything and stores nothing.
func plainUpstream(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// parked waits until so many connections are idle and hold no buffers.
func (r *rig) parked(n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprint(n, " connections are parked"), func() bool { return r.server.Parked() == n })
}

// held returns the size of the process's heap and stacks.
func held() int64 {
	var m runtime.MemStats
	for range 3 { // pools are emptied by the second, stacks shrink with each
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestIdleConnectionsHoldLittle has a thousand clients make a request each and stay connected. The memory for each, including the test's own
// end, is bounded: there is no buffer, no context and no grown stack. What the machine's load adds once, to the heap's gaps or to stacks that
// have not ended yet, another thousand clients do not add again.
func TestIdleConnectionsHoldLittle(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	const clients, most = 1000, 10 << 10
	for name, request := range map[string]string{
		"nothing sent": "",
		"a request": fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			chatPath, 10<<10),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{base: plainUpstream(t)})
			if request != "" {
				body := messages(say("user", "hi"))
				request += body + strings.Repeat(" ", 10<<10-len(body))
			}
			r.stay(16, request) // what is made once
			r.parked(16)
			each := int64(most + 1)
			for group := 1; each > most && group <= 3; group++ {
				before := held()
				r.stay(clients, request)
				r.parked(group*clients + 16)
				each = (held() - before) / clients
				t.Logf("an idle connection holds %d bytes", each)
			}
			if each > most {
				t.Errorf("an idle connection holds %d bytes, want %d at most", each, most)
			}
		})
	}
}

// stay opens connections, a few at a time, and sends a request on each if there is one. They stay open until the test ends.
func (r *rig) stay(clients int, request string) {
	r.t.Helper()
	free := make(chan *bufio.Reader, 8)
	for range cap(free) {
		free <- bufio.NewReader(nil)
	}
	var work sync.WaitGroup
	for range clients {
		in := <-free
		work.Go(func() {
			defer func() { free <- in }()
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				r.t.Error(err)
				return
			}
			r.t.Cleanup(func() { conn.Close() })
			if request == "" {
				return
			}
			_, _ = io.WriteString(conn, request)
			in.Reset(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				r.t.Error(err)
				return
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				r.t.Errorf("status %d, %v", resp.StatusCode, err)
			}
		})
	}
	work.Wait()
}

// TestParkedConnections: connections that were idle are served like new ones.
func TestParkedConnections(t *testing.T) {
	r := newRig(t, setup{base: plainUpstream(t)})
	w, leaver := r.dial(), r.dial()
	r.parked(2)
	leaver.Close()
	for i := range 3 {
		r.parked(1)
		w.post(hello)
		if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK || resp.Close {
			t.Errorf("request %d: %s", i, resp.Status)
		}
	}
}

// TestSilentConnectionsEnd: connections that are idle for too long end without an answer.
func TestSilentConnectionsEnd(t *testing.T) {
	quick.Skip(t)
	r := newRig(t, setup{base: plainUpstream(t), limits: func(l *proxy.Limits) {
		l.Idle, l.HeaderWait = 2*time.Second, 2*time.Second
	}})
	never := r.dial()
	never.wantEnd()
	used := r.dial()
	used.post(hello)
	used.answer(http.MethodPost)
	used.wantEnd()
}

// TestShutdownEndsParkedConnections: a shutdown does not wait for idle connections.
func TestShutdownEndsParkedConnections(t *testing.T) {
	quick.Skip(t)
	r := newRig(t, setup{base: plainUpstream(t)})
	used, never := r.dial(), r.dial()
	used.post(hello)
	used.answer(http.MethodPost)
	r.parked(2)
	must(t, <-r.shutdown(guard(t)))
	used.wantEnd()
	never.wantEnd()
}
