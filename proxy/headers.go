package proxy

import (
	"bufio"
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
