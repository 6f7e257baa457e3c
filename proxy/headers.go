package proxy

import (
	"bufio"
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
	if _, reason, ok := strings.Cut(from.Status, " "); ok {
		to.SetStatusMessage([]byte(reason))
	}
	named := connectionNames(from.Header.Get("Connection"))
	for name, values := range from.Header {
		lower := strings.ToLower(name)
		if hopByHop(name) || named[lower] || name == "Content-Length" || strings.HasPrefix(lower, ownPrefix) {
			continue
		}
		for _, v := range values {
			to.Add(name, v)
		}
	}
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

// smuggled reports whether a request's raw header declares its length in more than one way.
func smuggled(raw []byte) bool {
	lengths, encodings := 0, 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		name, _, ok := strings.Cut(line, ":")
		switch {
		case !ok:
		case strings.EqualFold(strings.TrimSpace(name), "content-length"):
			lengths++
		case strings.EqualFold(strings.TrimSpace(name), "transfer-encoding"):
			encodings++
		}
	}
	return lengths+encodings > 1
}
