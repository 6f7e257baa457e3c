package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// request is one client request on its way through the house. It outlives the handler: the answer is relayed, and the
// log written, after that has returned.
type request struct {
	server  *Server
	live    *live // the configuration that it is served under
	tenant  *Tenant
	dialect dialect.Dialect          // nil: passed through
	header  http.Header              // that goes upstream
	client  func(name string) string // reads the client's header; until the handler returns
	wish    string                   // X-Dewpoint-Condense: now, off or empty
	key     string                   // the client's credential
	method  string
	path    string
	query   string
	body    *body
	watch   *watch
	ctx     context.Context // ends when the client leaves
	cancel  context.CancelCauseFunc
	limit   *time.Timer // of the whole answer, nil: none
	over    sync.Once
	relayed bool // its answer is: the relay's end lets go of it
	seen    observation
	charged int // tokens taken from the tenant's minute
}

// handle is fasthttp's handler: read the request, run its turn, relay what comes.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := &request{}
	r.seen.begin(s)
	defer s.farewell(ctx)
	defer r.abandon() // after what is told of its end, for which its body is counted
	defer s.recovered(ctx, r)
	err := s.accept(ctx, r)
	if err == nil {
		err = s.run(ctx, r)
	}
	if err != nil {
		s.refuse(ctx, r, err)
	}
}

// accept checks a request, reads its body and begins to watch its client.
func (s *Server) accept(ctx *fasthttp.RequestCtx, r *request) error {
	if e := screen(ctx); e != nil {
		return e
	}
	header := func(name string) string { return string(ctx.Request.Header.Peek(name)) }
	r.server, r.live, r.key, r.method = s, s.live.Load(), apiKey(header), string(ctx.Method())
	r.path, r.query = string(ctx.URI().PathOriginal()), string(ctx.URI().QueryString())
	r.client, r.wish = header, strings.ToLower(header("X-Dewpoint-Condense"))
	if r.tenant = r.live.tenants.of(r.key); r.tenant == nil {
		s.discard(ctx)
		return closing(ctx, errUnauthorized())
	}
	r.seen.accepted(r)
	if e := s.admit(r); e != nil {
		s.discard(ctx)
		return closing(ctx, e)
	}
	accepted := false
	defer func() {
		if !accepted {
			r.tenant.gate.leave()
		}
	}()
	var err error
	if r.body, err = s.readBody(ctx, r.tenant); err != nil {
		s.countTooLarge(r, err)
		return err
	}
	r.header = outgoing(&ctx.Request.Header)
	r.dialect = s.dialectOf(r)
	r.seen.bodyRead()
	ended, cancel := context.WithCancelCause(s.requests)
	r.ctx, r.cancel = r.seen.spans.context(ended), cancel
	if limit := r.tenant.Upstream.Timeout; limit > 0 {
		r.limit = time.AfterFunc(limit, func() { r.cancel(context.DeadlineExceeded) })
	}
	r.watch = watchClient(ctx.Conn(), r.cancel)
	accepted = true
	return nil
}

// screen refuses what no request may be.
func screen(ctx *fasthttp.RequestCtx) *apiError {
	h := &ctx.Request.Header
	declared, ok := inspect(h.RawHeaders())
	switch {
	case !ok:
		e := errBadRequest("malformed_request", "The request is not valid HTTP/1.1.")
		e.Close = true
		return e
	case declared.keys > 1:
		e := errBadRequest("duplicate_header", "Send Authorization once.")
		e.Close = true
		return e
	case strings.EqualFold(string(h.Peek("Upgrade")), "websocket"):
		return errUpgrade()
	case declared.smuggled():
		e := errBadRequest("ambiguous_length", "Send either Content-Length or Transfer-Encoding, once.")
		e.Close = true
		return e
	case string(ctx.Method()) == "PRI", string(ctx.Method()) == http.MethodConnect, string(ctx.Method()) == http.MethodTrace:
		e := errBadRequest("method_not_allowed", "This method is not served.")
		e.Status, e.Close = http.StatusMethodNotAllowed, true
		return e
	case !strings.HasPrefix(string(h.Protocol()), "HTTP/1."):
		e := errBadRequest("version_not_supported", "Send the request by HTTP/1.1.")
		e.Status, e.Close = http.StatusHTTPVersionNotSupported, true
		return e
	}
	return nil
}

// closing makes an error close the connection if a body is still to come on it.
func closing(ctx *fasthttp.RequestCtx, e *apiError) *apiError {
	e.Close = e.Close || ctx.Request.Header.ContentLength() != 0
	return e
}

// discard reads a body that is refused.
func (s *Server) discard(ctx *fasthttp.RequestCtx) {
	if stream := ctx.RequestBodyStream(); stream != nil {
		s.reader.discard(stream, ctx.Conn())
	}
}

func (s *Server) readBody(ctx *fasthttp.RequestCtx, tenant *Tenant) (*body, error) {
	reader := s.reader.within(tenant.Limits.Body)
	if int64(ctx.Request.Header.ContentLength()) > 3*reader.limit {
		return nil, errTooLarge(reader.limit) // not worth reading to its end
	}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return reader.read(nil, ctx.Conn(), 0)
	}
	return reader.read(stream, ctx.Conn(), ctx.Request.Header.ContentLength())
}

// dialectOf gives the dialect of a request that can be condensed.
func (s *Server) dialectOf(r *request) dialect.Dialect {
	if r.method != http.MethodPost || r.header.Get("Content-Encoding") != "" {
		return nil
	}
	path := strings.TrimSuffix(strings.TrimPrefix(r.path, "/v1"), "/")
	return r.live.dialects[path]
}

// refuse answers an error, unless nobody is there to read it.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *request, err error) {
	var e *apiError
	switch {
	case errors.Is(err, errClientGone):
		r.seen.refused(statusClientGone, codeClientGone)
		ctx.SetConnectionClose()
		ctx.SetStatusCode(statusClientGone)
		return
	case errors.As(err, &e):
	default:
		s.o.Log.Error("request failed", zap.Error(err))
		e = errInternal()
	}
	r.seen.refused(e.Status, e.Code)
	answer(ctx, e)
}

// statusClientGone is nginx's status for a client that left before it was answered; it is counted, never read.
const statusClientGone = 499

// recovered turns a panic into an error of one request.
func (s *Server) recovered(ctx *fasthttp.RequestCtx, r *request) {
	if v := recover(); v != nil {
		s.panicked(v)
		e := errInternal()
		e.Close = true
		r.seen.refused(e.Status, e.Code)
		answer(ctx, e)
	}
}

func (s *Server) panicked(v any) {
	s.o.Log.Error("panic", zap.Any("value", v), zap.ByteString("stack", debug.Stack()))
	s.o.Metrics.panicked()
}

// abandon lets go of a request that was accepted and has no answer to be relayed.
func (r *request) abandon() {
	if r.watch != nil && !r.relayed {
		r.release()
	}
}

// release lets go of what a request holds. Its answer has been relayed, or will never be. A second call does nothing.
func (r *request) release() {
	r.over.Do(func() {
		if r.limit != nil {
			r.limit.Stop()
		}
		r.cancel(nil)
		r.watch.stop()
		r.body.release()
		r.tenant.gate.leave()
	})
}
