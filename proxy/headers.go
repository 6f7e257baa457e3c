package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// ownPrefix begins the names of headers between the client and this proxy.
const ownPrefix = "X-Dewpoint-"

// endToEnd reports whether a header, by its canonical name, is passed on. Hop-by-hop headers are not (RFC 9110, section 7.6.1), nor are those
// that the Connection header names, nor our own.
func endToEnd(name, connection string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Content-Length":
		return false
	}
	for named := range strings.SplitSeq(connection, ",") {
		if strings.EqualFold(strings.TrimSpace(named), name) {
			return false
		}
	}
	return !strings.HasPrefix(name, ownPrefix)
}

// outgoing returns the client's headers that go upstream.
func outgoing(h *fasthttp.RequestHeader) http.Header {
	out, connection := http.Header{}, string(h.Peek("Connection"))
	for k, v := range h.All() {
		name := http.CanonicalHeaderKey(string(k))
		if endToEnd(name, connection) && name != "Host" && name != "Expect" {
			out[name] = append(out[name], string(v))
		}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // keeps net/http from adding its own
	}
	return out
}

// incoming copies the status and headers of upstream's response into the client's.
func incoming(to *fasthttp.ResponseHeader, from *http.Response) {
	keepDate(to, from.Header.Get("Date"))
	to.SetStatusCode(from.StatusCode)
	if _, reason, ok := strings.Cut(from.Status, " "); ok && len(reason) <= maxReason && cleaned(reason) == reason {
		to.SetStatusMessage([]byte(reason))
	}
	connection := from.Header.Get("Connection")
	for name, values := range from.Header {
		if !endToEnd(name, connection) {
			continue
		}
		for _, v := range values {
			to.Add(name, cleaned(v))
		}
	}
}

// maxReason is the length of the longest reason phrase that is passed on, in bytes. A longer one is replaced by the standard phrase.
const maxReason = 128

// cleaned replaces the control characters in a header value or reason phrase by spaces: some clients and terminals act on them.
func cleaned(value string) string {
	out := []byte(value) // it need not be UTF-8
	for i, c := range out {
		if c < ' ' && c != '\t' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}

// keepDate sets upstream's Date in a response. fasthttp has no setter for it, but keeps one that it has parsed.
func keepDate(to *fasthttp.ResponseHeader, date string) {
	if date == "" {
		return
	}
	head := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: " + date + "\r\n\r\n"
	_ = to.Read(bufio.NewReaderSize(strings.NewReader(head), len(head))) // if it fails, the response has no date
}

// maxMethod is the length of the longest method that is served, in bytes. It is above that of every registered one.
const maxMethod = 32

// screen refuses requests that are malformed, ambiguous or not supported, whatever their tenant and path.
func screen(ctx *fasthttp.RequestCtx) error {
	h := &ctx.Request.Header
	lengths, keys, ok := inspect(h.RawHeaders())
	method := string(ctx.Method())
	switch {
	case !ok:
		return closing(400, "malformed_request", "The request is not valid HTTP/1.1.")
	case keys > 1:
		return closing(400, "duplicate_header", "Send Authorization once.")
	case len(method) > maxMethod || !token(method):
		return closing(400, "malformed_request", "The method is not a valid HTTP method.")
	case strings.EqualFold(string(h.Peek("Upgrade")), "websocket"):
		return errUpgrade
	case lengths > 1: // another server might believe the other one
		return closing(400, "ambiguous_length", "Send either Content-Length or Transfer-Encoding, once.")
	case method == "PRI", method == http.MethodConnect, method == http.MethodTrace:
		return closing(405, "method_not_allowed", "This method is not served.")
	case !strings.HasPrefix(string(h.Protocol()), "HTTP/1."):
		return closing(505, "version_not_supported", "Send the request by HTTP/1.1.")
	}
	return nil
}

// refuseEarly reads and drops the body of a request that is refused because of its header. A client that is still sending would not see the
// answer. It returns e, which closes the connection if there was a body.
func (r *request) refuseEarly(ctx *fasthttp.RequestCtx, e apiError) error {
	e.Close = r.discardBody(ctx) || e.Close
	return e
}

// discardBody drops the body of a request that is answered without it. It reports whether there was one: the connection must then be closed.
func (r *request) discardBody(ctx *fasthttp.RequestCtx) bool {
	if stream := ctx.RequestBodyStream(); stream != nil {
		r.server.reader.discard(stream, ctx.Conn())
	}
	return ctx.Request.Header.ContentLength() != 0
}

// inspect checks a request's raw header as strictly as RFC 9112 allows. It is not ok if another server could split it into other lines: folded
// lines, lines that end in a line feed alone, spaces in a name. lengths and keys count the fields that must not be repeated: those that give
// the body's length, and Authorization.
func inspect(raw []byte) (lengths, keys int, ok bool) {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
		raw = rest
		if len(line) == 0 {
			continue // the empty line at the end
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || !token(name) || bytes.ContainsAny(value, "\r\n\x00") {
			return 0, 0, false
		}
		switch {
		case bytes.EqualFold(name, []byte("content-length")), bytes.EqualFold(name, []byte("transfer-encoding")):
			lengths++
		case bytes.EqualFold(name, []byte("authorization")):
			keys++
		}
	}
	return lengths, keys, true
}

// token reports whether b is an HTTP token (RFC 9110, section 5.6.2).
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
