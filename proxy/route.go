package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// route is where a request goes below the base URL, and how its body is read.
type route struct {
	path    string          // as it goes upstream
	dialect dialect.Dialect // nil: passed through
	counts  bool            // how many tokens a request has; there is no answer to it
	speaks  dialect.Dialect // in which the client is told of errors, and sends its key; nil: not known
	served  string          // the path that the dialect is served at
	before  string          // what stands before that, with the name of a deployment: Azure's
}

// route finds what a request asks for. Servers decode, merge and drop parts of a path before they match it, each in its own way:
// a path that any of them could take for one that is read here is one, and goes upstream as its plain spelling. All others go as
// they came, less a leading /v1: the base URL has its own.
func (l *live) route(method, path string) route {
	plain := plainPath(path)
	speaks := l.speaks(plain)
	if method == http.MethodPost {
		if d := l.counts[plain]; d != nil {
			return route{path: plain, dialect: d, counts: true, speaks: d, served: plain}
		}
		if d := l.dialects[plain]; d != nil {
			return route{path: plain, dialect: d, speaks: d, served: plain}
		}
		before, _ := agents.Deployment(plain)
		served := strings.TrimPrefix(plain, before)
		if d := l.dialects[served]; d != nil {
			if strings.EqualFold(path, plain) {
				plain = path // names may have capitals
			}
			return route{path: plain, dialect: d, speaks: d, served: served, before: plain[:len(before)]}
		}
	}
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && (rest == "" || rest[0] == '/') {
		path = rest
	}
	return route{path: path, speaks: speaks}
}

// plainPath is a path as the most lenient server reads it: decoded, in lower case, without empty segments, parameters of segments,
// and any leading v1.
func plainPath(path string) string {
	for range 2 { // a gateway and the server behind it may decode once each
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
	}
	var plain strings.Builder
	for segment := range strings.FieldsFuncSeq(strings.ToLower(path), func(c rune) bool { return c == '/' || c == '\\' }) {
		name, _, _ := strings.Cut(segment, ";")
		name = strings.TrimSpace(name)
		if name == "" || name == "v1" && plain.Len() == 0 {
			continue
		}
		plain.WriteString("/" + name)
	}
	return plain.String()
}
