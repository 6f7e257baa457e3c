package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/proxy/h1"
)

// parts is a body that counts how often it is closed.
type parts struct {
	slices [][]byte
	closed atomic.Int32
}

func (p *parts) Parts() [][]byte          { return p.slices }
func (p *parts) Read([]byte) (int, error) { return 0, io.EOF }
func (p *parts) Close() error             { p.closed.Add(1); return nil }

func post(t *testing.T, ctx context.Context, target string, slices ...string) (*http.Request, *parts) {
	t.Helper()
	body := &parts{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices {
		body.slices = append(body.slices, []byte(s))
		req.ContentLength += int64(len(s))
	}
	req.Body = body
	return req, body
}

// other fails the test where a request should not have been left to it.
type other struct{ calls atomic.Int32 }

func (o *other) RoundTrip(*http.Request) (*http.Response, error) {
	o.calls.Add(1)
	return nil, errors.New("left to the other transport")
}

func transport(t *testing.T, o h1.Options) (*h1.Transport, *other) {
	t.Helper()
	rest := &other{}
	o.Other = rest
	tr := h1.New(o)
	t.Cleanup(tr.CloseIdleConnections)
	return tr, rest
}

// script is an upstream that answers each connection by a function, told how many there were before.
func script(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func readRequest(in *bufio.Reader) (*http.Request, string, error) {
	req, err := http.ReadRequest(in)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(req.Body)
	return req, string(body), err
}

func TestWritesWhatItWasGiven(t *testing.T) {
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.Header().Set("X-Answer", "yes")
		_, _ = io.WriteString(w, "fine")
	}))
	defer server.Close()
	tr, _ := transport(t, h1.Options{})
	req, sent := post(t, t.Context(), server.URL+"/a%2Fb?q=1", "one,", "", "two")
	req.Header["X-Two"] = []string{"1", "2"}
	req.Header["Connection"] = []string{"close"}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || string(answer) != "fine" || resp.Header.Get("X-Answer") != "yes" {
		t.Fatalf("answer %q, %v, header %v", answer, err, resp.Header)
	}
	if body != "one,two" || got.URL.RequestURI() != "/a%2Fb?q=1" || got.Host != req.URL.Host {
		t.Errorf("upstream got %q for %s at %s", body, got.URL.RequestURI(), got.Host)
	}
	if len(got.Header["X-Two"]) != 2 || got.Header.Get("User-Agent") != "" || got.Close {
		t.Errorf("upstream got the header %v, close %v", got.Header, got.Close)
	}
	if n := sent.closed.Load(); n != 1 {
		t.Errorf("the body was closed %d times", n)
	}
}

func TestKeepsConnections(t *testing.T) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
		}
		if r.URL.Path == "/none" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(w, "fine")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	tr, _ := transport(t, h1.Options{})
	large := strings.Repeat("x", 300<<10) // written beside
	for _, path := range []string{"/plain", "/chunked", "/none", "/plain"} {
		for _, body := range []string{"small", large} {
			req, sent := post(t, t.Context(), server.URL+path, body)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(path, err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Fatal(path, err)
			}
			_ = resp.Body.Close()
			if n := sent.closed.Load(); n != 1 {
				t.Errorf("%s: the body was closed %d times", path, n)
			}
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for requests one after another, want 1", n)
	}
}

func TestReplacesAClosedConnection(t *testing.T) {
	var bodies atomic.Int32
	url := script(t, func(n int, c net.Conn, in *bufio.Reader) {
		for range 2 {
			if _, _, err := readRequest(in); err != nil {
				return
			}
			bodies.Add(1)
			if n == 0 && bodies.Load() == 2 {
				return // takes the second request and closes without a word
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr, _ := transport(t, h1.Options{})
	for i := range 2 {
		req, sent := post(t, t.Context(), url, "body")
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "ok" {
			t.Fatalf("request %d: %q, %v", i, b, err)
		}
		if n := sent.closed.Load(); n != 1 {
			t.Errorf("request %d: body closed %d times", i, n)
		}
	}
	if n := bodies.Load(); n != 3 {
		t.Errorf("upstream read %d requests, want 3: one of them twice", n)
	}
}

// TestDoesNotRepeatWhatWasTaken has an upstream end a kept connection so late that it must have read the request: a second
// one might be served, and paid for, as well.
func TestDoesNotRepeatWhatWasTaken(t *testing.T) {
	var bodies atomic.Int32
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := readRequest(in); err != nil || bodies.Add(1) == 2 {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr, _ := transport(t, h1.Options{})
	tr.SetCrossing(0) // everything is late
	for i := range 2 {
		req, sent := post(t, t.Context(), url, "body")
		resp, err := tr.RoundTrip(req)
		if err == nil {
			_, _ = io.ReadAll(resp.Body)
		}
		if (err == nil) != (i == 0) || sent.closed.Load() != 1 {
			t.Errorf("request %d: %v, body closed %d times", i, err, sent.closed.Load())
		}
	}
	if n := bodies.Load(); n != 2 {
		t.Errorf("upstream read %d requests, want 2", n)
	}
}

func TestANewConnectionThatClosesIsAnError(t *testing.T) {
	var asked atomic.Int32
	url := script(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		_, _, _ = readRequest(in)
		asked.Add(1)
	})
	tr, _ := transport(t, h1.Options{})
	req, sent := post(t, t.Context(), url, "body")
	resp, err := tr.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("no error")
	}
	if asked.Load() != 1 || sent.closed.Load() != 1 {
		t.Errorf("asked %d times, body closed %d times", asked.Load(), sent.closed.Load())
	}
}

func TestDoesNotKeepWhatCanNotBeUsedAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"close":          "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"no length":      "HTTP/1.1 200 OK\r\n\r\nok",
		"HTTP/1.0":       "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"bytes after it": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npoison!",
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
				conns.Add(1)
				if _, _, err := readRequest(in); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			})
			tr, _ := transport(t, h1.Options{})
			for range 2 {
				req, _ := post(t, t.Context(), url, "body")
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "ok" {
					t.Fatalf("%q, %v", b, err)
				}
			}
			if n := conns.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

func TestSkipsInterimResponses(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, _, err := readRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr, _ := transport(t, h1.Options{})
	req, _ := post(t, t.Context(), url, "body")
	resp, err := tr.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Link") != "" {
		t.Fatalf("%+v, %v", resp, err)
	}
	_ = resp.Body.Close()
}

func TestCancelEndsTheExchange(t *testing.T) {
	gone := make(chan struct{}, 1)
	for name, answer := range map[string]string{
		"before the header": "",
		"in the header":     "HTTP/1.1 200 OK\r\nContent-",
		"in the body":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			taken := make(chan struct{})
			url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
				_, _, _ = readRequest(in)
				_, _ = io.WriteString(c, answer)
				close(taken)
				_, _ = in.ReadByte() // ends when the client has gone
				gone <- struct{}{}
			})
			cause := errors.New("the client left")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-taken; cancel(cause) }()
			tr, _ := transport(t, h1.Options{})
			req, sent := post(t, ctx, url, "body")
			resp, err := tr.RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause of the cancellation", err)
			}
			<-gone
			if n := sent.closed.Load(); n != 1 {
				t.Errorf("body closed %d times", n)
			}
		})
	}
}

func TestCancelFreesABodyThatUpstreamDoesNotRead(t *testing.T) {
	url := script(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		_, _ = in.Peek(1)
		<-t.Context().Done() // never reads
	})
	ctx, cancel := context.WithCancel(t.Context())
	tr, _ := transport(t, h1.Options{})
	req, sent := post(t, ctx, url, strings.Repeat("x", 64<<20))
	time.AfterFunc(10*time.Millisecond, cancel)
	if resp, err := tr.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("no error")
	}
	if sent.closed.Load() != 1 {
		t.Error("the body is not free")
	}
}

func TestTakesAnAnswerThatComesBeforeTheRequestIsRead(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_, _ = in.Peek(1)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		<-t.Context().Done()
	})
	tr, _ := transport(t, h1.Options{})
	req, sent := post(t, t.Context(), url, strings.Repeat("x", 64<<20))
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil || string(b) != "big" || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %q, %v", resp.StatusCode, b, err)
	}
	if sent.closed.Load() != 1 {
		t.Error("the body is not free")
	}
}

func TestWaitsForAHeaderNoLongerThanAllowed(t *testing.T) {
	url := script(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		_, _, _ = readRequest(in)
		_, _ = in.ReadByte()
	})
	tr, _ := transport(t, h1.Options{HeaderWait: 10 * time.Millisecond})
	req, _ := post(t, t.Context(), url, "body")
	resp, err := tr.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("error %v, want a timeout", err)
	}
}

func TestBoundsAHeader(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_, _, _ = readRequest(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
		_, _ = c.Write(bytes.Repeat([]byte("x"), 4<<20))
	})
	tr, _ := transport(t, h1.Options{})
	req, _ := post(t, t.Context(), url, "body")
	if resp, err := tr.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("a header of 4 MiB was taken")
	}
}

func TestLeavesToTheOtherWhatItDoesNotSpeak(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"TLS":             func(r *http.Request) { r.URL.Scheme = "https" },
		"unknown body":    func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) },
		"wrong length":    func(r *http.Request) { r.ContentLength++ },
		"CR in a value":   func(r *http.Request) { r.Header["X"] = []string{"a\r\nB: c"} },
		"LF in a name":    func(r *http.Request) { r.Header["X\nY"] = []string{"a"} },
		"NUL in a value":  func(r *http.Request) { r.Header["X"] = []string{"a\x00"} },
		"space in method": func(r *http.Request) { r.Method = "POST /x" },
		"line in a host":  func(r *http.Request) { r.Host = "a\r\nb" },
		"expect":          func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"trailer":         func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
	} {
		t.Run(name, func(t *testing.T) {
			tr, rest := transport(t, h1.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("dialled")
			}})
			req, _ := post(t, t.Context(), "http://127.0.0.1:1/x", "body")
			change(req)
			resp, err := tr.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if rest.calls.Load() != 1 {
				t.Errorf("not left to the other transport: %v", err)
			}
		})
	}
}

func TestConnectsWhereTheURLSays(t *testing.T) {
	for target, want := range map[string]string{
		"http://a.example/x": "a.example:80", "http://a.example:81": "a.example:81", "http://[::1]/": "[::1]:80",
	} {
		var dialled string
		tr, _ := transport(t, h1.Options{Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled = addr
			return nil, errors.New("not today")
		}})
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip((&http.Request{Method: "GET", URL: u, Header: http.Header{}}).WithContext(t.Context()))
		if err == nil {
			_ = resp.Body.Close()
		}
		if dialled != want {
			t.Errorf("%s: dialled %q (%v), want %q", target, dialled, err, want)
		}
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	closed := make(chan struct{}, 8)
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := readRequest(in); err != nil {
				closed <- struct{}{}
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr, _ := transport(t, h1.Options{MaxIdle: 1, Idle: 20 * time.Millisecond})
	var open []*http.Response
	for range 3 { // at the same time
		req, _ := post(t, t.Context(), url, "body")
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	for _, resp := range open {
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // two at once, the third when it has been idle for long enough
		<-closed
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "fine")
	}))
	defer server.Close()
	for _, size := range []int{10_000, 1_000_000} {
		body := bytes.Repeat([]byte("x"), size)
		for name, tr := range map[string]http.RoundTripper{
			"h1": h1.New(h1.Options{}), "net-http": &http.Transport{DisableCompression: true, WriteBufferSize: 64 << 10},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				u, err := url.Parse(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					req := (&http.Request{
						Method: http.MethodPost, URL: u, Header: http.Header{}, Body: &stream{parts: &parts{slices: [][]byte{body}}},
						ContentLength: int64(size),
					}).WithContext(b.Context())
					resp, err := tr.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
	}
}

// stream is parts that any transport can read.
type stream struct {
	*parts
	off int
}

func (s *stream) Read(p []byte) (int, error) {
	n := copy(p, s.slices[0][s.off:])
	if s.off += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
