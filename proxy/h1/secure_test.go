package h1_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/proxy/h1"
)

// secured is a server behind TLS that gives back what it gets, and counts its connections.
func secured(t *testing.T, two bool) (server *httptest.Server, conns *atomic.Int32) {
	t.Helper()
	conns = &atomic.Int32{}
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Protocol", r.Proto)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	server.EnableHTTP2, server.Config.ErrorLog = two, log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, conns
}

// behind is a transport that trusts a server, with net/http's for what it does not speak.
func behind(t *testing.T, server *httptest.Server) (tr *h1.Transport, others *atomic.Int32) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	rest, others := &http.Transport{ForceAttemptHTTP2: true}, &atomic.Int32{}
	tr = h1.New(h1.Options{
		Other: counting{rest, others}, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	})
	rest.DialTLSContext = tr.DialTLS
	t.Cleanup(func() { tr.CloseIdleConnections(); rest.CloseIdleConnections() })
	return tr, others
}

type counting struct {
	http.RoundTripper
	calls *atomic.Int32
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// readable is a body for either transport.
type readable struct {
	*parts
	io.Reader
}

func (r readable) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// echo sends slices and wants them back.
func echo(t *testing.T, tr *h1.Transport, url, protocol string, slices ...string) {
	t.Helper()
	req, sent := post(t, t.Context(), url, slices...)
	want := strings.Join(slices, "")
	req.Body = readable{sent, strings.NewReader(want)}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != want || resp.Header.Get("X-Protocol") != protocol {
		t.Errorf("%s: %d bytes of %d, %v, by %s", protocol, len(got), len(want), err, resp.Header.Get("X-Protocol"))
	}
}

func TestSpeaksTLS(t *testing.T) {
	server, conns := secured(t, false)
	tr, others := behind(t, server)
	large := strings.Repeat("0123456789", 100<<10)
	for _, slices := range [][]string{{"one"}, {"one,", "", "two"}, {large}, {"a", large, "b", large[:20<<10], "c"}, {"end"}} {
		echo(t, tr, server.URL, "HTTP/1.1", slices...)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for requests one after another, want 1", n)
	}
	if n := others.Load(); n != 0 {
		t.Errorf("%d requests were left to the other transport", n)
	}
}

// TestLeavesHTTP2 has a host that speaks HTTP/2: the other transport gets it, and the connection that told so.
func TestLeavesHTTP2(t *testing.T) {
	server, conns := secured(t, true)
	tr, others := behind(t, server)
	for range 3 {
		echo(t, tr, server.URL, "HTTP/2.0", "one,", "two")
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if n := others.Load(); n != 3 {
		t.Errorf("the other transport got %d requests, want 3", n)
	}
}

func TestTLSFails(t *testing.T) {
	server, _ := secured(t, false)
	tr, _ := transport(t, h1.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	req, sent := post(t, t.Context(), server.URL, "x")
	var unknown x509.UnknownAuthorityError
	if _, err := tr.RoundTrip(req); !errors.As(err, &unknown) { //nolint:bodyclose // there is none
		t.Errorf("an unknown authority: %v", err)
	}
	if n := sent.closed.Load(); n != 1 {
		t.Errorf("the body was closed %d times", n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // which never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1))
		cancel(errors.New("the client left"))
	}()
	req, _ = post(t, ctx, "https://"+l.Addr().String(), "x")
	if _, err := tr.RoundTrip(req); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
		t.Errorf("cancelled: %v", err)
	}
}
