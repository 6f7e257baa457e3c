package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
)

// upstreamRequest returns the request to send. Its body is the parts, one after the other; each Read of it calls taken.
func (r *request) upstreamRequest(a attempt, taken func()) *http.Request {
	parts, held := r.wireBody(a.header, a.parts)
	req := (&http.Request{
		Method: r.params.method, URL: a.url, Host: a.url.Host, Header: a.header, ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(r.ctx)
	for _, p := range parts {
		req.ContentLength += int64(len(p))
	}
	if req.ContentLength == 0 {
		return req
	}
	sent := &sentBody{parts: parts, held: held, taken: taken}
	req.GetBody = sent.open
	req.Body, _ = sent.open()
	r.lease.sent = sent
	return req
}

// sentBody is the source of a request body. The transport refers to it, through GetBody, until the answer has been read; drop frees the
// bytes before that.
type sentBody struct {
	mu    sync.Mutex
	parts [][]byte
	held  *body // nil once dropped
	taken func()
}

// open returns a reader that starts at the beginning of the body.
func (s *sentBody) open() (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return nil, http.ErrBodyReadAfterClose
	}
	s.held.Hold()
	return &upload{parts: slices.Clone(s.parts), held: s.held, taken: s.taken}, nil
}

// drop is called once the answer has begun, when the body cannot be sent again. It does nothing for a nil sentBody.
func (s *sentBody) drop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.held = nil, nil
}

// upload reads the parts of a body. A transport may go on reading after RoundTrip has returned, so the bytes are held until it closes the
// upload, as every transport must.
type upload struct {
	mu    sync.Mutex
	parts net.Buffers
	held  *body // nil once closed
	taken func()
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	u.taken()
	return u.parts.Read(p) // io.EOF
}

func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held != nil {
		u.held.Release()
		u.held, u.parts = nil, nil
	}
	return nil
}

// target joins the upstream's base URL with a request's path and query. A client can choose no other part of the URL, except that a path of
// Gemini's API brings its own version.
func target(base *url.URL, path, query string) (*url.URL, error) {
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		return nil, badRequest("invalid_path", "The path is not a valid URL path.")
	}
	if path != "" && path[0] != '/' || climbs(unescaped) {
		return nil, badRequest("invalid_path", "The path must not leave the base URL.")
	}
	u := *base
	raw, plain := strings.TrimSuffix(base.EscapedPath(), "/"), strings.TrimSuffix(base.Path, "/")
	if agents.Gemini(path) {
		raw, plain = agents.WithoutVersion(raw), agents.WithoutVersion(plain)
	}
	u.RawPath, u.Path = raw+path, plain+unescaped
	u.RawQuery = query
	if base.RawQuery != "" {
		u.RawQuery = strings.TrimSuffix(base.RawQuery+"&"+query, "&")
	}
	return &u, nil
}

// climbs reports whether a path has a segment that some server may read as the same or the parent directory.
func climbs(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// upstreamError returns the client's answer for an error before upstream answered, without internals.
func upstreamError(ctx context.Context, err error) error {
	var timeout net.Error
	var refused *dial.RefusedError
	switch {
	case errors.Is(context.Cause(ctx), errClientGone):
		return errClientGone
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e := badUpstream("upstream_timeout", "The upstream did not answer in time.")
		e.Status = http.StatusGatewayTimeout
		return e
	case errors.Is(context.Cause(ctx), context.Canceled):
		return errStopping
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, errConnectionClosed):
		return badUpstream(codeUnreachable, "The upstream closed the connection before it answered. Try again.")
	case errors.As(err, &refused):
		return badUpstream(codeUnreachable, fmt.Sprintf("The proxy does not connect to the upstream: %s. Check upstream.base_url.", refused.Rule))
	case malformed(err):
		return badUpstream(codeUnreachable, "The upstream's answer was not valid HTTP. Try again, or check upstream.base_url.")
	}
	return badUpstream(codeUnreachable, fmt.Sprintf("The upstream could not be reached: %s. Try again, or check upstream.base_url.", reason(err)))
}

// malformed reports whether an answer could not be read. The errors of net/http have no types.
func malformed(err error) bool {
	return errors.Is(err, errMalformedHeader) || strings.Contains(err.Error(), "transport connection broken") ||
		strings.Contains(err.Error(), "response headers exceeded")
}

// reason returns a short cause that contains no address.
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
