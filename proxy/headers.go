package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// ownPrefix marks the headers that are between the client and this proxy.
const ownPrefix = "X-Dewpoint-"

// endToEnd reports whether a header is passed on, by its canonical name: not one that concerns a connection only (RFC 9110, section
// 7.6.1), always or because the Connection header names it, nor one between the client and this proxy.
func endToEnd(name, connection string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Content-Length":
		return false
	}
	if connection != "" {
		for named := range strings.SplitSeq(connection, ",") {
			if strings.EqualFold(strings.TrimSpace(named), name) {
				return false
			}
		}
	}
	return !strings.HasPrefix(name, ownPrefix)
}

// outgoing gives the headers that go upstream.
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

// incoming writes the head of upstream's response into the client's.
func incoming(to *fasthttp.ResponseHeader, from *http.Response) {
	keepDate(to, from.Header.Get("Date"))
	to.SetStatusCode(from.StatusCode)
	if _, reason, ok := strings.Cut(from.Status, " "); ok && len(reason) <= longestReason && cleaned(reason) == reason {
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

// longestReason is how long a status may be in words, in bytes. A longer one is replaced by the standard's.
const longestReason = 128

// cleaned is a header's value, or a reason phrase, without control characters, which some clients and terminals act on.
func cleaned(value string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f {
			return ' '
		}
		return c
	}, value)
}

// keepDate gives a response the date that upstream gave it. fasthttp sets no Date but its own; it keeps one that it has
// read, though.
func keepDate(to *fasthttp.ResponseHeader, date string) {
	if date == "" {
		return
	}
	head := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: " + date + "\r\n\r\n"
	_ = to.Read(bufio.NewReaderSize(strings.NewReader(head), len(head))) // on failure there is no date
}

// longestMethod is how long a method may be, in bytes: as the longest registered one, and then some.
const longestMethod = 32

// screen refuses what no request may be.
func screen(ctx *fasthttp.RequestCtx) error {
	h := &ctx.Request.Header
	lengths, keys, ok := inspect(h.RawHeaders())
	method := string(ctx.Method())
	refuse := func(status int, code, message string) error {
		return apiError{Status: status, Type: typeInvalid, Code: code, Message: message, Close: true}
	}
	switch {
	case !ok:
		return refuse(400, "malformed_request", "The request is not valid HTTP/1.1.")
	case keys > 1:
		return refuse(400, "duplicate_header", "Send Authorization once.")
	case len(method) > longestMethod || !token(method):
		return refuse(400, "malformed_request", "The method is not one of HTTP's.")
	case strings.EqualFold(string(h.Peek("Upgrade")), "websocket"):
		return errUpgrade
	case lengths > 1: // another server might take another one
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

// inspect reads a request's raw header, as strictly as RFC 9112 allows: what another server could read as other lines
// than this one does (folded lines, lines that end in a line feed alone, spaces in a name) is not ok. It counts the fields that must
// not be there twice: those that tell the body's length, and keys.
func inspect(raw []byte) (lengths, keys int, ok bool) {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
		raw = rest
		if len(line) == 0 {
			continue // the end
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
