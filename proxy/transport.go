package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// retryWindow is how long after a request was sent the close of its connection may have crossed it on the wire. An upstream that closes later
// has read the request: it may have served and billed it, and must not get it again (RFC 9110, section 9.2.2).
const retryWindow = time.Second

// maxAnswerHeader bounds the header of an upstream's response, in bytes.
const maxAnswerHeader = 1 << 20

// Transport is net/http's Transport, except that it repeats a request whose kept connection turned out to be closed, and refuses responses
// with malformed header names.
type Transport struct {
	kept   *http.Transport
	fresh  *http.Transport // uses each connection once
	window time.Duration
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns the default transport: HTTP/1.1 and HTTP/2, TLS, proxies from the environment, kept connections, all of which the guard
// has permitted. It does not touch content encodings. headerTimeout bounds the wait for the response's header; 0 is no bound.
func NewTransport(headerTimeout time.Duration, guard dial.Guard) *Transport {
	return newTransport(headerTimeout, guard, &tls.Config{MinVersion: tls.VersionTLS12})
}

func newTransport(headerTimeout time.Duration, guard dial.Guard, secure *tls.Config) *Transport {
	kept := &http.Transport{
		Proxy:                  guard.Proxy,
		DialContext:            guard.DialContext,
		TLSClientConfig:        secure,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true,
		WriteBufferSize:        64 << 10,
		ReadBufferSize:         16 << 10,
	}
	fresh := kept.Clone()
	fresh.DisableKeepAlives = true
	return &Transport{kept: kept, fresh: fresh, window: retryWindow}
}

// CloseIdleConnections closes the kept connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.kept.CloseIdleConnections()
	t.fresh.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. If a reused connection is closed within a second, before the first byte of the response, the request
// is sent once more on a new connection, even a POST.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	first := &trip{}
	resp, err := t.kept.RoundTrip(first.follow(req))
	if err != nil && req.Context().Err() == nil && first.crossed(err, t.window) {
		again := *req
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err // as net/http's
			}
		}
		resp, err = t.fresh.RoundTrip(&again)
	}
	if err != nil {
		return nil, err // as net/http's
	}
	for name := range resp.Header {
		if !token(name) {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("%w: %q", errMalformedHeader, name)
		}
	}
	return resp, nil
}

// errMalformedHeader refuses a response whose header names are not tokens. net/http accepts a space before the colon as a part of the name,
// which might make the next hop read another length.
var errMalformedHeader = errors.New("malformed response header")

// errConnectionClosed keeps net/http from sending the body again.
var errConnectionClosed = errors.New("the kept connection closed before the response")

// trip follows one request through net/http, which may use several connections for it.
type trip struct {
	reused   atomic.Int64 // when it got a kept HTTP/1.1 connection, in nanoseconds of Unix time; 0: its last connection is not one
	http2    atomic.Bool
	answered atomic.Bool // the first byte of the response was received
}

// follow returns a copy of the request that reports its connections to the attempt. net/http repeats requests with an Idempotency-Key, however
// late, so over HTTP/1.1 it does not get the body again: Transport decides. HTTP/2 servers say which requests were not processed.
func (a *trip) follow(req *http.Request) *http.Request {
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: a.connected, GotFirstResponseByte: func() { a.answered.Store(true) },
	}))
	if get := req.GetBody; get != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			if !a.http2.Load() {
				return nil, errConnectionClosed
			}
			return get()
		}
	}
	return req
}

func (a *trip) connected(info httptrace.GotConnInfo) {
	wire := info.Conn
	secured, ok := info.Conn.(*tls.Conn)
	if ok {
		wire = secured.NetConn()
	}
	http2 := ok && secured.ConnectionState().NegotiatedProtocol == "h2"
	a.reused.Store(0)
	if info.Reused && !http2 {
		a.reused.Store(time.Now().UnixNano())
		if !silent(wire) {
			_ = wire.Close()
		}
	}
	a.http2.Store(http2)
	a.answered.Store(false)
}

// silent reports whether a kept connection is open and has no unread bytes. net/http would take bytes that arrived before the request was
// written for its answer.
func silent(wire net.Conn) bool {
	sc, ok := wire.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	state := platform.Closed
	err = raw.Control(func(socket uintptr) { state = platform.Peek(socket) })
	return err == nil && state == platform.Silent
}

// crossed reports whether the request and the close of its connection may have crossed on the wire.
func (a *trip) crossed(err error, window time.Duration) bool {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.Canceled) {
		return false
	}
	since := a.reused.Load()
	return since > 0 && !a.answered.Load() && time.Since(time.Unix(0, since)) < window
}
