package proxy

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// longestMethod is how long a method may be, in bytes: as the longest registered one, and then some.
const longestMethod = 32

// screen refuses what no request may be.
func screen(ctx *fasthttp.RequestCtx) error {
	h := &ctx.Request.Header
	found, ok := inspect(h.RawHeaders())
	method := string(ctx.Method())
	refuse := func(status int, code, message string) error {
		return apiError{Status: status, Type: typeInvalid, Code: code, Message: message, Close: true}
	}
	switch {
	case !ok:
		return refuse(400, "malformed_request", "The request is not valid HTTP/1.1.")
	case found.keys > 1:
		return refuse(400, "duplicate_header", "Send Authorization once.")
	case len(method) > longestMethod || !token(method):
		return refuse(400, "malformed_request", "The method is not one of HTTP's.")
	case strings.EqualFold(string(h.Peek("Upgrade")), "websocket"):
		return errUpgrade
	case found.lengths > 1: // another server might take another one
		return refuse(400, "ambiguous_length", "Send either Content-Length or Transfer-Encoding, once.")
	case method == "PRI", method == http.MethodConnect, method == http.MethodTrace:
		return refuse(405, "method_not_allowed", "This method is not served.")
	case !strings.HasPrefix(string(h.Protocol()), "HTTP/1."):
		return refuse(505, "version_not_supported", "Send the request by HTTP/1.1.")
	}
	return nil
}

// turnAway reads a body that is refused, and gives the error, which closes the connection if there was one.
func (r *request) turnAway(ctx *fasthttp.RequestCtx, e apiError) error {
	if stream := ctx.RequestBodyStream(); stream != nil {
		r.server.reader.discard(stream, ctx.Conn())
	}
	e.Close = e.Close || ctx.Request.Header.ContentLength() != 0
	return e
}

// fields is what a request's raw header was found to hold of the fields that must not be there twice.
type fields struct{ lengths, keys int }

// inspect reads a request's raw header, as strictly as RFC 9112 allows: what another server could read as other lines
// than this one does (folded lines, lines that end in a line feed alone, spaces in a name) is not ok.
func inspect(raw []byte) (f fields, ok bool) {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
		raw = rest
		if len(line) == 0 {
			continue // the end
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || !token(name) || bytes.ContainsAny(value, "\r\n\x00") {
			return f, false
		}
		switch {
		case bytes.EqualFold(name, []byte("content-length")), bytes.EqualFold(name, []byte("transfer-encoding")):
			f.lengths++
		case bytes.EqualFold(name, []byte("authorization")):
			f.keys++
		}
	}
	return f, true
}

// token reports whether b is one (RFC 9110, section 5.6.2).
func token[T string | []byte](b T) bool {
	for i := range len(b) {
		switch c := b[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return len(b) > 0
}
