package h1

import (
	"net/http"
	"strconv"
	"strings"
)

// appendHead appends a request's line and header. It reports false where a field can not be written as it is.
func appendHead(b []byte, req *http.Request) ([]byte, bool) {
	if b == nil {
		b = make([]byte, 0, 1024)
	}
	uri := req.URL.RequestURI()
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	if !token(req.Method) || !plain(uri) || strings.Contains(uri, " ") || !plain(host) {
		return nil, false
	}
	b = append(append(append(append(b, req.Method...), ' '), uri...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, host...), "\r\n"...)
	for name, values := range req.Header {
		if own(name) {
			continue
		}
		for _, v := range values {
			if !token(name) || !plain(v) {
				return nil, false
			}
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	if req.ContentLength > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), req.ContentLength, 10), "\r\n"...)
	}
	return append(b, "\r\n"...), true
}

// own reports whether this package writes a field by itself.
func own(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection":
		return true
	}
	return false
}

// token reports whether s can be a method or the name of a field (RFC 9110, section 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// plain reports whether s can be the value of a field: no control characters but the tab.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
