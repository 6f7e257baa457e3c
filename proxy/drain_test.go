package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// shutdown starts to shut the server down and returns when the port is closed. The channel receives the result.
func (r *rig) shutdown(ctx context.Context) <-chan error {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.server.Shutdown(ctx) }()
	for {
		conn, err := net.Dial("tcp", r.addr)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) { // reset: it came as the port was closed
			return ended
		}
		must(r.t, err)
		conn.Close()
	}
}

// TestDrainingServerTellsClientsToClose: once the server drains, answers tell clients to close the connection.
func TestDrainingServerTellsClientsToClose(t *testing.T) {
	r := newRig(t, setup{})
	kept := r.dial()
	kept.post(hello)
	if resp, _ := kept.answer(http.MethodPost); resp.Close {
		t.Error("closed without a reason")
	}
	r.server.Drain()
	for _, body := range []string{hello, "{"} { // an error of our own, too
		w := r.dial()
		w.post(body)
		if resp, _ := w.answer(http.MethodPost); !resp.Close {
			t.Errorf("%s: the client is not told", resp.Status)
		}
		w.wantEnd()
	}
	kept.post(hello)
	if resp, _ := kept.answer(http.MethodPost); resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("%s on the kept connection, close %t", resp.Status, resp.Close)
	}
	kept.wantEnd()
}

// TestShutdownServesKeptConnections sends requests during a shutdown: on a connection whose client could not be told to close it, since its
// answer had begun before, and in two parts on a new connection. Both are served.
func TestShutdownServesKeptConnections(t *testing.T) {
	quick.Skip(t)
	hold := make(chan struct{})
	r := newRig(t, setup{})
	r.up.Script(fakeupstream.Answer{Content: "in two parts", Fault: fakeupstream.Fault{Hold: hold, HoldAfter: 2}})
	streaming, slow, silent := r.dial(), r.dial(), r.dial()
	streaming.post(helloing)
	first := streaming.begin(http.MethodPost)
	slow.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")

	ended := r.shutdown(guard(t))
	slow.send("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	if resp, body := slow.answer(http.MethodPost); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s: %s", resp.Status, body)
	}
	close(hold)
	drain(t, first)
	streaming.post(hello)
	if resp, _ := streaming.answer(http.MethodPost); resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("%s after the stream, close %t", resp.Status, resp.Close)
	}
	silent.wantEnd()
	must(t, <-ended)
}

// TestShutdownCutsOffNothing: a server without requests has nothing to cut off, however little time it has.
func TestShutdownCutsOffNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, newRig(t, setup{}).server.Shutdown(ctx))
}

// TestShutdownCutsOff: an answer that does not end is cut off, and Shutdown returns ErrCut.
func TestShutdownCutsOff(t *testing.T) {
	r := newRig(t, setup{})
	never := make(chan struct{})
	r.up.Script(fakeupstream.Answer{Content: "never whole", Fault: fakeupstream.Fault{Hold: never, HoldAfter: 2}})
	streaming := r.dial()
	streaming.post(helloing)
	resp := streaming.begin(http.MethodPost)
	ctx, cancel := context.WithCancel(t.Context())
	ended := r.shutdown(ctx)
	cancel()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
	if err := <-ended; !errors.Is(err, proxy.ErrCut) {
		t.Errorf("Shutdown gives %v", err)
	}
}
