package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// ownPrefix marks the headers that are between the client and this proxy.
const ownPrefix = "x-dewpoint-"

// hopByHop reports whether a header concerns one connection only (RFC 9110, section 7.6.1).
func hopByHop(name string) bool {
	switch strings.ToLower(name) {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
		"transfer-encoding", "upgrade":
		return true
	}
	return false
}

// connectionNames are the headers that a Connection header makes hop-by-hop.
func connectionNames(connection string) map[string]bool {
	if connection == "" {
		return nil
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(connection, ",") {
		names[strings.ToLower(strings.TrimSpace(name))] = true
	}
	return names
}

// outgoing gives the headers that go upstream: all of the client's but those of its connection and of this proxy.
func outgoing(h *fasthttp.RequestHeader) http.Header {
	out := http.Header{}
	named := connectionNames(string(h.Peek("Connection")))
	for k, v := range h.All() {
		name := string(k)
		lower := strings.ToLower(name)
		switch {
		case hopByHop(name), named[lower], strings.HasPrefix(lower, ownPrefix):
		case lower == "host", lower == "content-length", lower == "expect":
		default:
			out[http.CanonicalHeaderKey(name)] = append(out[http.CanonicalHeaderKey(name)], string(v))
		}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // keeps net/http from adding its own
	}
	return out
}

// incoming writes the head of upstream's response into the client's: all but what is its connection's and this proxy's.
func incoming(to *fasthttp.ResponseHeader, from *http.Response) {
	keepDate(to, from.Header.Get("Date"))
	to.SetStatusCode(from.StatusCode)
	if _, reason, ok := strings.Cut(from.Status, " "); ok && len(reason) <= longestReason && cleaned(reason) == reason {
		to.SetStatusMessage([]byte(reason))
	}
	named := connectionNames(from.Header.Get("Connection"))
	for name, values := range from.Header {
		lower := strings.ToLower(name)
		if hopByHop(name) || named[lower] || name == "Content-Length" || strings.HasPrefix(lower, ownPrefix) {
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

// fields is what a request's raw header was found to hold of the fields that must not be there twice.
type fields struct{ lengths, encodings, keys int }

// smuggled reports whether a request's length is declared in more than one way.
func (f fields) smuggled() bool { return f.lengths+f.encodings > 1 }

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
		case bytes.EqualFold(name, []byte("content-length")):
			f.lengths++
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			f.encodings++
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
