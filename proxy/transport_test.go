package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// tracked is a request body that counts when its copies are opened and closed.
type tracked struct{ opened, closed atomic.Int32 }

type trackedBody struct {
	io.Reader
	closing func()
}

func (b trackedBody) Close() error { b.closing(); return nil }

func (tr *tracked) open(text string) io.ReadCloser {
	tr.opened.Add(1)
	return trackedBody{strings.NewReader(text), func() { tr.closed.Add(1) }}
}

// wait waits until each copy is closed, which a transport may do after it has returned the response.
func (tr *tracked) wait(t *testing.T) {
	t.Helper()
	for ctx := guard(t); tr.closed.Load() < tr.opened.Load(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d bodies opened, %d closed", tr.opened.Load(), tr.closed.Load())
		}
	}
}

func posting(t *testing.T, ctx context.Context, url, text string) (*http.Request, *tracked) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	must(t, err)
	body := &tracked{}
	req.ContentLength = int64(len(text))
	req.GetBody = func() (io.ReadCloser, error) { return body.open(text), nil }
	req.Body = body.open(text)
	return req, body
}

func newTransport(t *testing.T) *proxy.Transport {
	t.Helper()
	tr := proxy.NewTransport(0, dial.Guard{})
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// scripted is an upstream that calls a function for each connection with its number.
func scripted(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// take reads a request.
func take(in *bufio.Reader) error {
	req, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

func wantOK(t *testing.T, resp *http.Response, err error) {
	t.Helper()
	must(t, err)
	if body := drain(t, resp); body != "ok" {
		t.Errorf("got %q", body)
	}
}

// TestTransportReplacesAClosedConnection has an upstream take a request on a kept connection and close it without an answer. The request is
// sent once more, with or without an Idempotency-Key, for which net/http would repeat it itself.
func TestTransportReplacesAClosedConnection(t *testing.T) {
	for _, key := range []string{"", "abc"} {
		t.Run("key "+key, func(t *testing.T) {
			var taken atomic.Int32
			url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
				for take(in) == nil && taken.Add(1) != 2 {
					_, _ = io.WriteString(c, okAnswer)
				}
			})
			tr := newTransport(t)
			for range 2 {
				req, body := posting(t, t.Context(), url, "body")
				if key != "" {
					req.Header.Set("Idempotency-Key", key)
				}
				resp, err := tr.RoundTrip(req)
				wantOK(t, resp, err)
				body.wait(t)
			}
			if n := taken.Load(); n != 3 {
				t.Errorf("upstream read %d requests, want 3: one of them twice", n)
			}
		})
	}
}

// TestTransportRepeatsOnce has an upstream that serves one request per connection and closes it at the next. A request that fails twice is
// an error.
func TestTransportRepeatsOnce(t *testing.T) {
	var taken atomic.Int32
	url := scripted(t, func(n int, c net.Conn, in *bufio.Reader) {
		for i := 0; take(in) == nil; i++ {
			if taken.Add(1); n > 0 || i > 0 {
				return
			}
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	tr := newTransport(t)
	req, _ := posting(t, t.Context(), url, "body")
	resp, err := tr.RoundTrip(req)
	wantOK(t, resp, err)
	req, body := posting(t, t.Context(), url, "body")
	if _, err := tr.RoundTrip(req); err == nil {
		t.Error("no error")
	}
	body.wait(t)
	if n := taken.Load(); n != 3 {
		t.Errorf("upstream read %d requests, want 3", n)
	}
}

// TestTransportDoesNotRepeatWhatWasTaken has an upstream close a kept connection so late that it must have read the request. A second one
// might be served and billed as well.
func TestTransportDoesNotRepeatWhatWasTaken(t *testing.T) {
	for _, key := range []string{"", "abc"} {
		t.Run("key "+key, func(t *testing.T) {
			var taken atomic.Int32
			url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
				for take(in) == nil && taken.Add(1) != 2 {
					_, _ = io.WriteString(c, okAnswer)
				}
			})
			tr := newTransport(t)
			tr.SetRetryWindow(0) // everything is late
			for i := range 2 {
				req, body := posting(t, t.Context(), url, "body")
				if key != "" {
					req.Header.Set("Idempotency-Key", key)
				}
				resp, err := tr.RoundTrip(req)
				if i == 0 {
					wantOK(t, resp, err)
				} else if err == nil {
					t.Error("no error")
				}
				body.wait(t)
			}
			if n := taken.Load(); n != 2 {
				t.Errorf("upstream read %d requests, want 2", n)
			}
		})
	}
}

// TestTransportDoesNotRepeatAnAnswer has an upstream close a kept connection in the middle of its response header.
func TestTransportDoesNotRepeatAnAnswer(t *testing.T) {
	var taken atomic.Int32
	url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for take(in) == nil {
			if taken.Add(1) == 2 {
				_, _ = io.WriteString(c, okAnswer[:20])
				return
			}
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	tr := newTransport(t)
	req, _ := posting(t, t.Context(), url, "body")
	resp, err := tr.RoundTrip(req)
	wantOK(t, resp, err)
	req, _ = posting(t, t.Context(), url, "body")
	if _, err := tr.RoundTrip(req); err == nil || taken.Load() != 2 {
		t.Errorf("%v, %d requests", err, taken.Load())
	}
}

func TestTransportANewConnectionThatClosesIsAnError(t *testing.T) {
	var taken atomic.Int32
	url := scripted(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		_ = take(in)
		taken.Add(1)
	})
	req, body := posting(t, t.Context(), url, "body")
	if _, err := newTransport(t).RoundTrip(req); err == nil {
		t.Error("no error")
	}
	body.wait(t)
	if taken.Load() != 1 {
		t.Errorf("asked %d times", taken.Load())
	}
}

func TestTransportRefusesMalformedHeaders(t *testing.T) {
	for name, field := range map[string]string{
		"space before the colon": "Content-Length : 13", "of a chunked body": "Transfer-Encoding : chunked",
		"in an unknown name": "X Y: z", "at the end of an unknown name": "X-Y : z",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 OK\r\n"+field+"\r\nContent-Length: 2\r\n\r\n{}")})
			resp, body := r.ask(hello)
			wantError(t, resp, body, 502, "upstream_unreachable")
		})
	}
}

// TestTransportAddsNoHeaders: only the given headers are sent, and those that every request needs.
func TestTransportAddsNoHeaders(t *testing.T) {
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header()["X-Lower"] = []string{"a, b", "c"}
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	req, _ := posting(t, t.Context(), server.URL, "body")
	req.Header = http.Header{"User-Agent": nil, "X-Two": {"1", "2"}}
	resp, err := newTransport(t).RoundTrip(req)
	wantOK(t, resp, err)
	if len(got) != 2 || got.Get("Content-Length") != "4" || !slices.Equal(got["X-Two"], []string{"1", "2"}) {
		t.Errorf("upstream got %v", got)
	}
	if !slices.Equal(resp.Header["X-Lower"], []string{"a, b", "c"}) {
		t.Errorf("the client gets %v", resp.Header)
	}
}

func TestTransportCancels(t *testing.T) {
	for name, answer := range map[string]string{
		"before the header": "",
		"in the header":     "HTTP/1.1 200 OK\r\nContent-",
		"in the body":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			taken, gone := make(chan struct{}), make(chan struct{})
			url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
				_ = take(in)
				_, _ = io.WriteString(c, answer)
				close(taken)
				_, _ = in.ReadByte() // ends when the client has gone
				close(gone)
			})
			cause := errors.New("the client left")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-taken; cancel(cause) }()
			req, body := posting(t, ctx, url, "body")
			resp, err := newTransport(t).RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause of the cancellation", err)
			}
			<-gone
			body.wait(t)
		})
	}
}

func TestTransportCancelFreesABodyThatUpstreamDoesNotRead(t *testing.T) {
	taken := make(chan struct{})
	url := scripted(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		_, _ = in.Peek(1)
		close(taken)
		<-t.Context().Done() // never reads
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-taken; cancel() }()
	req, body := posting(t, ctx, url, strings.Repeat("x", 32<<20))
	if _, err := newTransport(t).RoundTrip(req); err == nil {
		t.Error("no error")
	}
	body.wait(t)
}

func TestTransportTakesAnAnswerThatComesBeforeTheRequestIsRead(t *testing.T) {
	url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_, _ = in.Peek(1)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		<-t.Context().Done()
	})
	req, body := posting(t, t.Context(), url, strings.Repeat("x", 32<<20))
	resp, err := newTransport(t).RoundTrip(req)
	must(t, err)
	if got := drain(t, resp); got != "big" || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %q", resp.StatusCode, got)
	}
	body.wait(t)
}

func TestTransportBoundsAHeader(t *testing.T) {
	url := scripted(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_ = take(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
		_, _ = c.Write(bytes.Repeat([]byte("x"), 4<<20))
	})
	req, _ := posting(t, t.Context(), url, "body")
	if _, err := newTransport(t).RoundTrip(req); err == nil {
		t.Error("a header of 4 MiB was taken")
	}
}

// TestTransportKeepsConnections sends one request after another, in the clear and over TLS with both versions of HTTP.
func TestTransportKeepsConnections(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1 plain": (*httptest.Server).Start,
		"HTTP/1.1 TLS":   (*httptest.Server).StartTLS,
		"HTTP/2.0 TLS":   func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Protocol", r.Proto)
				text, _ := io.ReadAll(r.Body)
				_, _ = w.Write(text)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			start(server)
			t.Cleanup(server.Close)
			roots := x509.NewCertPool()
			if server.Certificate() != nil {
				roots.AddCert(server.Certificate())
			}
			protocol, _, _ := strings.Cut(name, " ")
			for range 5 { // net/http gives up a connection whose request it has not seen ended after 50 ms, as happens on a busy machine
				conns.Store(0)
				tr := proxy.NewTransportTo(roots)
				for _, text := range []string{"one", strings.Repeat("0123456789", 100<<10), "two"} {
					req, body := posting(t, t.Context(), server.URL, text)
					resp, err := tr.RoundTrip(req)
					must(t, err)
					if got := drain(t, resp); got != text || resp.Header.Get("X-Protocol") != protocol {
						t.Errorf("%d bytes of %d by %s", len(got), len(text), resp.Header.Get("X-Protocol"))
					}
					body.wait(t)
				}
				tr.CloseIdleConnections()
				if conns.Load() == 1 {
					return
				}
			}
			t.Error("three requests never went by one connection")
		})
	}
}

func TestTransportTrustsNoUnknownAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	req, body := posting(t, t.Context(), server.URL, "x")
	var unknown x509.UnknownAuthorityError
	if _, err := newTransport(t).RoundTrip(req); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	body.wait(t)
}

// TestUpstreamHangsUp: an upstream that takes the request and closes the connection was reached.
func TestUpstreamHangsUp(t *testing.T) {
	for name, part := range map[string]string{"at once": "", "in the header": "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n"} {
		for _, linger := range []int{-1, 0} { // 0: resets
			r := newRig(t, setup{base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, part)
				_ = conn.SetLinger(linger)
			})})
			resp, body := r.ask(hello)
			wantError(t, resp, body, 502, "upstream_unreachable")
			if !strings.Contains(body, "The upstream closed the connection before it answered. Try again.") {
				t.Errorf("%s, linger %d: %s", name, linger, body)
			}
		}
	}
}
