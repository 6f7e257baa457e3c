package proxy

import (
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// longestMethod is how long a method may be, in bytes: as the longest registered one, and then some.
const longestMethod = 32

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
	case len(ctx.Method()) > longestMethod || !token(ctx.Method()):
		e := errBadRequest("malformed_request", "The method is not one of HTTP's.")
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

func (r *request) readBody(ctx *fasthttp.RequestCtx) (*body, error) {
	reader := r.reader()
	if int64(ctx.Request.Header.ContentLength()) > 3*reader.limit {
		return nil, errTooLarge(reader.limit) // not worth reading to its end
	}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return reader.read(nil, ctx.Conn(), 0)
	}
	return reader.read(stream, ctx.Conn(), ctx.Request.Header.ContentLength())
}
