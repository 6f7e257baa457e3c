package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

type (
	zapcoreCore = zapcore.Core
	loggedEntry = observer.LoggedEntry
)

// logged returns a log entry as text.
func logged(e observer.LoggedEntry) string {
	b, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}).EncodeEntry(e.Entry, e.Context)
	if err != nil {
		return err.Error()
	}
	return b.String()
}

const (
	chatPath = "/v1/chat/completions"
	hello    = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
	helloing = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// request returns a request; header is pairs of names and values.
func (r *rig) request(ctx context.Context, method, path, body string, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
	must(r.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// post sends a chat completion request and returns the response with its body unread.
func (r *rig) post(body string, header ...string) *http.Response {
	r.t.Helper()
	resp, err := r.client.Do(r.request(guard(r.t), http.MethodPost, chatPath, body, header...))
	must(r.t, err)
	return resp
}

// ask is post, and reads the body.
func (r *rig) ask(body string, header ...string) (*http.Response, string) {
	r.t.Helper()
	resp := r.post(body, header...)
	return resp, drain(r.t, resp)
}

// wire is a client that writes and reads bytes.
type wire struct {
	*net.TCPConn
	t *testing.T
	r *bufio.Reader
}

func (r *rig) dial() *wire {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	must(r.t, err)
	must(r.t, conn.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { conn.Close() })
	return &wire{TCPConn: conn.(*net.TCPConn), t: r.t, r: bufio.NewReader(conn)}
}

func (w *wire) send(s string) {
	w.t.Helper()
	_, err := io.WriteString(w, s)
	must(w.t, err)
}

// post sends a complete chat completion request.
func (w *wire) post(body string) {
	w.t.Helper()
	w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		chatPath, len(body), body))
}

// begin reads the header of the next response.
func (w *wire) begin(method string) *http.Response {
	w.t.Helper()
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
	must(w.t, err)
	return resp
}

// answer reads the next response.
func (w *wire) answer(method string) (*http.Response, string) {
	w.t.Helper()
	resp := w.begin(method)
	return resp, drain(w.t, resp)
}

// wantEnd checks that the server closes the connection without sending more.
func (w *wire) wantEnd() {
	w.t.Helper()
	rest, err := io.ReadAll(w.r)
	if len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		w.t.Errorf("want the connection closed, got %q, %v", rest, err)
	}
}

// wantError checks that a response is an error of our own, in OpenAI's shape.
func wantError(t *testing.T, resp *http.Response, body string, status int, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               any
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("status %d, not an error object: %q", resp.StatusCode, body)
	}
	if strings.Contains(body, keyMark) {
		t.Errorf("a credential is in the answer: %s", body)
	}
	if resp.StatusCode != status || e.Error.Code != code || e.Error.Message == "" || e.Error.Type == "" ||
		resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("status %d, %s; want %d %s", resp.StatusCode, body, status, code)
	}
}

// rawUpstream answers the first request of each connection by calling play, and closes the connection. It returns the base URL.
func rawUpstream(t *testing.T, play func(conn *net.TCPConn, r *http.Request)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var work sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					play(conn.(*net.TCPConn), req)
				}
			})
		}
	})
	return "http://" + listener.Addr().String() + "/v1"
}

// cannedUpstream answers every request with the same bytes.
func cannedUpstream(t *testing.T, answer string) string {
	return rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, answer)
	})
}

// chunked frames a body in chunks of a size.
func chunked(body string, size int) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// messages joins messages into a chat completion.
func messages(m ...string) string {
	return `{"model":"gpt-4o","messages":[` + strings.Join(m, ",") + `]}`
}

func say(role, text string) string {
	b, _ := json.Marshal(map[string]string{"role": role, "content": text})
	return string(b)
}
