package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// endings lists the ways in which a client leaves.
var endings = map[string]func(*wire){
	"closes":      func(w *wire) { w.Close() },
	"resets":      func(w *wire) { _ = w.SetLinger(0); w.Close() },
	"half closes": func(w *wire) { _ = w.CloseWrite() },
}

func TestClientLeaves(t *testing.T) {
	quick.Skip(t)
	for name, leave := range endings {
		for _, phase := range []struct {
			name   string
			answer fakeupstream.Answer
			events int // that the client reads first
		}{
			{"before the header", fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}}, -1},
			{"before an event", fakeupstream.Answer{Fault: fakeupstream.Fault{Hold: make(chan struct{})}}, 0},
			{"in a silent gap", fakeupstream.Answer{Content: "one two three four",
				Fault: fakeupstream.Fault{Hold: make(chan struct{}), HoldAfter: 2}}, 2},
		} {
			t.Run(name+" "+phase.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, setup{})
				r.up.Script(phase.answer)
				w := r.dial()
				w.post(helloing)
				_, err := r.up.Wait(guard(t), 1)
				must(t, err)
				if phase.events >= 0 {
					stream := bufio.NewReader(w.begin(http.MethodPost).Body)
					for range phase.events {
						readEvent(t, stream)
					}
				}
				leave(w)
				_, err = r.up.WaitCancelled(guard(t), 1)
				must(t, err)
				r.atEnd("dewpoint_client_gone_total", 1)
			})
		}
	}
}

// flood answers with an endless stream, until it can no longer be written.
func flood(ended chan<- struct{}) func(conn *net.TCPConn, r *http.Request) {
	return func(conn *net.TCPConn, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		event := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("x", 1000) + "\"}}]}\n\n"
		for {
			if _, err := io.WriteString(conn, strings.TrimSuffix(chunked(event, len(event)), "0\r\n\r\n")); err != nil {
				return
			}
		}
	}
}

func TestClientLeavesAFlood(t *testing.T) {
	for name, leave := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 1)
			r := newRig(t, setup{base: rawUpstream(t, flood(ended))})
			w := r.dial()
			w.post(helloing)
			readEvent(t, bufio.NewReader(w.begin(http.MethodPost).Body))
			leave(w)
			select {
			case <-ended:
			case <-guard(t).Done():
				t.Fatal("the upstream goes on")
			}
		})
	}
}

// TestClientLeavesAtTheEnd: a client that has the end mark of its answer has all of it, even if upstream has not ended its body.
func TestClientLeavesAtTheEnd(t *testing.T) {
	messages, items := messagesapi.New(split.Options{}), responses.New(split.Options{})
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		events  []string
		gone    float64 // requests that count as left
	}{
		"chat":      {nil, []string{`data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, "data: [DONE]"}, 0},
		"messages":  {messages, []string{`event: message_stop` + "\n" + `data: {"type":"message_stop"}`}, 0},
		"responses": {items, []string{`data: {"type":"response.completed","response":{"status":"completed","output":[]}}`}, 0},
		"not there": {nil, []string{`data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, 1},
	} {
		for way, leave := range endings {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				cancelled := make(chan struct{})
				r := newRig(t, setup{dialect: c.dialect, base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+strings.Join(c.events, "\n\n")+"\n\n")
					_, _ = conn.Read(make([]byte, 1)) // until the proxy hangs up
					close(cancelled)
				})})
				w := r.dial()
				w.post(helloing)
				stream := bufio.NewReader(w.begin(http.MethodPost).Body)
				for range c.events {
					readEvent(t, stream)
				}
				leave(w)
				<-cancelled
				r.atEnd("dewpoint_client_gone_total", c.gone)
			})
		}
	}
}

// TestClientThatDoesNotReadIsCutOff has a client that stays but does not read. It is cut off in the end; otherwise it would hold its request for ever.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	quick.Skip(t)
	ended := make(chan struct{}, 1)
	r := newRig(t, setup{
		base:   rawUpstream(t, flood(ended)),
		limits: func(l *proxy.Limits) { l.StreamIdle = time.Second },
	})
	w := r.dial()
	must(t, w.SetReadBuffer(4<<10))
	w.post(helloing)
	select {
	case <-ended:
	case <-guard(t).Done():
		t.Fatal("the upstream goes on")
	}
	must(t, r.server.Shutdown(guard(t))) // which waits for the connection
	r.atEnd("dewpoint_client_gone_total", 1)
}

func TestKeptConnectionAfterOthersLeft(t *testing.T) {
	r := newRig(t, setup{})
	kept := r.dial()
	kept.post(hello)
	kept.answer(http.MethodPost)
	for i := range 3 {
		r.up.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}})
		w := r.dial()
		w.post(hello)
		_, err := r.up.Wait(guard(t), i+2)
		must(t, err)
		w.Close()
	}
	_, err := r.up.WaitCancelled(guard(t), 3)
	must(t, err)
	_, err = r.up.WaitEnded(guard(t), 4)
	must(t, err)
	for range 3 {
		kept.post(hello)
		if resp, body := kept.answer(http.MethodPost); resp.StatusCode != http.StatusOK || !strings.Contains(body, "Understood") {
			t.Errorf("status %d, %s", resp.StatusCode, body)
		}
	}
}

// TestManyRequestsOnOneConnection alternates between answers with and without a length, and paths that are refused.
func TestManyRequestsOnOneConnection(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	for range 5 {
		w.post(hello)
		if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		w.post(helloing)
		if _, body := w.answer(http.MethodPost); !strings.HasSuffix(body, "data: [DONE]\n\n") {
			t.Fatalf("got %q", body)
		}
		w.post("{")
		resp, body := w.answer(http.MethodPost)
		wantError(t, resp, body, 400, "invalid_json")
		w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp, _ := w.answer(http.MethodGet); resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
}

func TestPipelining(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	const requests = 4
	var all strings.Builder
	for i := range requests {
		r.up.Script(fakeupstream.Answer{Content: "answer " + string(rune('0'+i))})
		all.WriteString("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 77\r\n\r\n" +
			hello + strings.Repeat(" ", 77-len(hello)))
	}
	w.send(all.String())
	for i := range requests {
		if _, body := w.answer(http.MethodPost); !strings.Contains(body, "answer "+string(rune('0'+i))) {
			t.Errorf("request %d: %s", i, body)
		}
	}
}

// TestHalfARequest leaves connections at every point of a request.
func TestHalfARequest(t *testing.T) {
	r := newRig(t, setup{})
	const head = "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	long := strings.Repeat(" ", 100<<10)
	for _, part := range []string{
		"", "PO", head, head + "Content-Length: 50\r\n\r\n", head + "Content-Length: 50\r\n\r\n{\"mod",
		head + "Content-Length: 900000\r\n\r\n" + long,
		head + "Transfer-Encoding: chunked\r\n\r\n", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"mo",
		head + "Transfer-Encoding: chunked\r\n\r\n19000\r\n" + long,
		head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"mod\r\n", head + "Expect: 100-continue\r\nContent-Length: 50\r\n\r\n",
	} {
		w := r.dial()
		w.send(part)
		w.Close()
	}
	for _, rest := range []string{"zz\r\n", "-5\r\n", "5\r\nabcdefgh", "fffffffffffffffff\r\n", "\r\n"} {
		w := r.dial()
		w.send(head + "Transfer-Encoding: chunked\r\n\r\n" + rest)
		resp, body := w.answer(http.MethodPost)
		wantError(t, resp, body, 400, "incomplete_body")
		w.wantEnd()
	}
	if _, body := r.ask(hello); !strings.Contains(body, "Understood") {
		t.Errorf("afterwards: %s", body)
	}
	if n := len(r.up.Requests()); n != 1 {
		t.Errorf("%d requests went upstream, want 1", n)
	}
}
