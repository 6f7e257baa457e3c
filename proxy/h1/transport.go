// Package h1 is a lean HTTP/1.1 client: no goroutine stands by a kept connection, a request's body goes from the caller's
// memory to the socket in one system call, a part of an answer is given as soon as it comes, and a cancelled context ends
// the connection at once. What it does not speak (HTTP/2, proxies, bodies of unknown form) it leaves to another
// RoundTripper.
package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Options are what a Transport is made of.
type Options struct {
	Other      http.RoundTripper // for whatever this transport does not speak
	Dial       func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS        *tls.Config   // nil: the other transport speaks to upstreams behind TLS
	HeaderWait time.Duration // for the response's header, 0: no limit
	Idle       time.Duration // of a kept connection; 90 s by default
	MaxIdle    int           // kept connections to one host; 256 by default
}

// Transport is an http.RoundTripper, safe for concurrent use.
type Transport struct {
	o        Options
	idle     idle
	secure   *secure // nil: no TLS
	crossing time.Duration
}

var _ http.RoundTripper = (*Transport)(nil)

// New makes a transport.
func New(o Options) *Transport {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	if o.Idle == 0 {
		o.Idle = 90 * time.Second
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 256
	}
	t := &Transport{o: o, idle: idle{keep: o.Idle, most: o.MaxIdle}, crossing: crossing}
	if o.TLS != nil {
		t.secure = &secure{config: o.TLS, dial: o.Dial, other: map[string]bool{}, spare: map[string]*tls.Conn{}}
	}
	return t
}

// CloseIdleConnections closes the connections that are kept.
func (t *Transport) CloseIdleConnections() {
	t.idle.closeAll()
	if c, ok := t.o.Other.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Parts is a request body that is written straight from memory: slices, one after another, which stay as they are until
// the body is closed.
type Parts interface {
	Parts() [][]byte
}

// RoundTrip implements http.RoundTripper. A kept connection that turns out to be closed, before a byte of the response
// came and within a second, is replaced by a new one, once.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	head, body, ok := t.speaks(req)
	if !ok {
		return t.o.Other.RoundTrip(req)
	}
	addr, isTLS := address(req), req.URL.Scheme == "https"
	if isTLS && t.secure.isOther(addr) {
		return t.o.Other.RoundTrip(req)
	}
	if c := t.idle.get(origin(addr, isTLS)); c != nil {
		resp, err := t.exchange(req, c, head, body)
		if !errors.Is(err, errUnanswered) || req.Context().Err() != nil {
			return resp, closing(req, err)
		}
	}
	c, err := t.dial(req.Context(), addr, isTLS)
	if err != nil {
		return nil, closing(req, err)
	}
	if c == nil {
		return t.hand(req, addr)
	}
	resp, err := t.exchange(req, c, head, body)
	return resp, closing(req, err)
}

// speaks gives the head and the body as they are written, if this transport can write them.
func (t *Transport) speaks(req *http.Request) (head []byte, body [][]byte, ok bool) {
	if req.URL.Scheme != "http" && (req.URL.Scheme != "https" || t.secure == nil) || req.Header["Expect"] != nil || len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 {
		return nil, nil, false
	}
	if proxy, err := http.ProxyFromEnvironment(req); proxy != nil || err != nil {
		return nil, nil, false
	}
	if req.Body != nil && req.Body != http.NoBody {
		parts, ok := req.Body.(Parts)
		if !ok {
			return nil, nil, false
		}
		body = parts.Parts()
	}
	if size(body) != req.ContentLength {
		return nil, nil, false
	}
	head, ok = appendHead(nil, req)
	return head, body, ok
}

func size(parts [][]byte) (n int64) {
	for _, p := range parts {
		n += int64(len(p))
	}
	return n
}

// closing closes a request's body where the response will not do it: a transport must, always.
func closing(req *http.Request, err error) error {
	if err != nil && req.Body != nil {
		_ = req.Body.Close()
	}
	return err
}

func address(req *http.Request) string {
	switch {
	case req.URL.Port() != "":
		return req.URL.Host
	case req.URL.Scheme == "https":
		return net.JoinHostPort(req.URL.Hostname(), "443")
	}
	return net.JoinHostPort(req.URL.Hostname(), "80")
}

// origin is what connections are kept under.
func origin(addr string, isTLS bool) string {
	if isTLS {
		return "https://" + addr
	}
	return addr
}

// dial makes a connection, nil if its host speaks HTTP/2.
func (t *Transport) dial(ctx context.Context, addr string, isTLS bool) (*conn, error) {
	connect := t.connect
	if isTLS {
		connect = t.secure.connect
	}
	raw, err := connect(ctx, addr)
	if err != nil || raw == nil {
		return nil, err
	}
	return newConn(raw, origin(addr, isTLS)), nil
}

func (t *Transport) connect(ctx context.Context, addr string) (net.Conn, error) {
	raw, err := t.o.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return raw, nil
}

// hand gives a request to the other transport, with the connection that was made for it.
func (t *Transport) hand(req *http.Request, addr string) (*http.Response, error) {
	resp, err := t.o.Other.RoundTrip(req)
	if c := t.secure.take(addr); c != nil {
		_ = c.Close() // it had no need of it
	}
	return resp, err //nolint:wrapcheck // as without this transport
}
