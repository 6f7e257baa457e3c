package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// NewTransport is the default way upstream: HTTP/1.1 and 2, TLS, proxies from the environment, connections kept. It does
// not touch content encodings. headerTimeout bounds the wait for the response's header, 0: no bound.
func NewTransport(headerTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: headerTimeout,
		DisableCompression:    true,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        16 << 10,
	}
}

// outbound is one request on its way upstream. Parts are its body, written one after another.
type outbound struct {
	Method string
	URL    *url.URL
	Header http.Header
	Parts  [][]byte
}

func (o *outbound) request(ctx context.Context) *http.Request {
	req := (&http.Request{
		Method: o.Method, URL: o.URL, Host: o.URL.Host, Header: o.Header, ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	for _, p := range o.Parts {
		req.ContentLength += int64(len(p))
	}
	if req.ContentLength == 0 {
		return req
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(newParts(o.Parts)), nil }
	req.Body, _ = req.GetBody()
	return req
}

// newParts reads slices one after another.
func newParts(parts [][]byte) io.Reader {
	if len(parts) == 1 {
		return bytes.NewReader(parts[0])
	}
	return &partsReader{parts: parts}
}

type partsReader struct {
	parts [][]byte
	off   int
}

func (r *partsReader) Read(p []byte) (int, error) {
	n := 0
	for len(r.parts) > 0 && n < len(p) {
		c := copy(p[n:], r.parts[0][r.off:])
		n, r.off = n+c, r.off+c
		if r.off == len(r.parts[0]) {
			r.parts, r.off = r.parts[1:], 0
		}
	}
	if n == 0 && len(r.parts) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// target joins the upstream's base URL with the path that the client asked for, less a leading /v1: the base URL has its
// own. The client picks no other part of the URL.
func target(base *url.URL, path, query string) (*url.URL, error) {
	lower := strings.ToLower(path)
	if strings.Contains(lower, "..") || strings.Contains(lower, "%2e") || !strings.HasPrefix(path, "/") {
		return nil, errBadRequest("invalid_path", "The path may not leave the base URL.")
	}
	if rest := strings.TrimPrefix(path, "/v1"); rest == "" || rest[0] == '/' {
		path = rest
	}
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		return nil, errBadRequest("invalid_path", "The path is not a valid URL path.")
	}
	u := *base
	u.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + path
	u.Path = strings.TrimSuffix(base.Path, "/") + unescaped
	u.RawQuery = query
	if base.RawQuery != "" {
		u.RawQuery = strings.TrimSuffix(base.RawQuery+"&"+query, "&")
	}
	return &u, nil
}

// upstreamError names what went wrong before upstream answered, without internals.
func upstreamError(ctx context.Context, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), errClientGone):
		return errClientGone
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errUpstream("upstream_timeout", "The upstream did not answer in time.")
	}
	return errUpstream("upstream_unreachable", fmt.Sprintf("The upstream could not be reached: %s.", reason(err)))
}

// reason is a short cause without addresses.
func reason(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "its name did not resolve"
	case strings.Contains(err.Error(), "connection refused"):
		return "connection refused"
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return "TLS failed"
	}
	return "connection failed"
}
