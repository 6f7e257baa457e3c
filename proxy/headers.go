package proxy

import (
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

// incoming copies upstream's response headers to the client's response.
func incoming(to *fasthttp.ResponseHeader, from http.Header) {
	named := connectionNames(from.Get("Connection"))
	for name, values := range from {
		if hopByHop(name) || named[strings.ToLower(name)] || name == "Content-Length" {
			continue
		}
		for _, v := range values {
			to.Add(name, v)
		}
	}
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
