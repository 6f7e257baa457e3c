package proxy

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// Live is the part of the configuration that can be replaced while the server runs. A request is served to its end under
// the one that it began with.
type Live struct {
	Tenants  Tenants
	Dialects map[string]dialect.Dialect // by path below the base URL, e.g. /chat/completions
	Counts   map[string]dialect.Dialect // by path, likewise: asked for the tokens of a request, which is forwarded as the request would be
	Compacts map[string]dialect.Dialect // by path, likewise: asked for a history as one item; such a path ends in /compact, behind the dialect's own
	Models   func(name string) ModelInfo
	Headers  []string // that name a session; agents.SessionHeaders if empty
	Fields   []string // of the body, likewise
}

// live is a Live in force.
type live struct {
	Live
	settings *engine.Settings

	compactors *compactors
	managers   *compactors
}

// Swap puts another configuration in force for the requests that come from now on. A tenant keeps what it has taken.
func (s *Server) Swap(l Live) {
	next, gates := &live{Live: l}, map[string]*gate{}
	if earlier := s.live.Load(); earlier != nil {
		next.compactors, next.managers = earlier.compactors, earlier.managers // each has a goroutine that never ends
		next.compactors.Purge()
		next.managers.Purge()
		for _, t := range earlier.Tenants {
			gates[t.Name] = t.gate
		}
	} else {
		next.compactors, next.managers = newCompactors(), newCompactors()
	}
	forEngine := make([]*engine.Tenant, len(l.Tenants))
	for i, t := range l.Tenants {
		t.gate = cmp.Or(t.gate, gates[t.Name], &gate{})
		forEngine[i] = &t.Tenant
	}
	next.settings = s.o.Engine.Swap(engine.Settings{
		Tenants: forEngine, Dialects: slices.Collect(maps.Values(l.Dialects)), Headers: l.Headers, Fields: l.Fields,
		Models: func(name string) engine.Model { return l.Models(name).Model },
	})
	s.live.Store(next)
}

// speaks gives the dialect that clients of a path understand: in whose shape they are told of errors, and where they send keys.
func (l *live) speaks(path string) dialect.Dialect {
	for served, d := range l.Dialects {
		if path == served || strings.HasPrefix(path, served+"/") {
			return d
		}
	}
	return nil
}

// route is where a request goes below the base URL, and how its body is read.
type route struct {
	path    string          // as it goes upstream
	dialect dialect.Dialect // nil: passed through
	counts  bool            // how many tokens a request has; there is no answer to it
	compact bool            // a history as one item; there is no other answer to it
	speaks  dialect.Dialect // in which the client is told of errors, and sends its key; nil: not known
	served  string          // the path that the dialect is served at
	before  string          // what stands before that, with the name of a deployment: Azure's
	model   string          // that name; empty: none
	odd     bool            // servers may read the name in several ways: the request goes as it came, unread
}

// route finds what a request asks for. Servers decode, merge and drop parts of a path before they match it, each in its own way:
// a path that any of them could take for one that is read here is one, and goes upstream as its plain spelling, but for the name of a
// deployment. All others go as they came, less a leading /v1: the base URL has its own.
func (l *live) route(method, path string) route {
	plain := plainPath(path)
	found := route{speaks: l.speaks(plain)}
	if method == http.MethodPost {
		counts, compact := l.Counts[plain], l.Compacts[plain]
		if d := cmp.Or(counts, compact, l.Dialects[plain]); d != nil {
			return route{path: plain, dialect: d, speaks: d, served: plain, counts: counts != nil, compact: compact != nil}
		}
		before, name := agents.Deployment(plain)
		served := strings.TrimPrefix(plain, before)
		if d := l.Dialects[served]; d != nil {
			raw, model := deployment(path)
			found = route{dialect: d, speaks: d, served: served, model: model, odd: strings.ToLower(model) != name}
			found.before = strings.TrimSuffix(before, name) + raw
			if !found.odd {
				found.path = found.before + served
				return found
			}
		}
	}
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && (rest == "" || rest[0] == '/') {
		path = rest
	}
	found.path = path
	return found
}

// deployment finds the name of a deployment in a path as it came: how it is spelt there, and how a server reads it that decodes once.
func deployment(path string) (raw, name string) {
	after := false
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' }) {
		if after {
			name, _ = url.PathUnescape(segment)
			return segment, name
		}
		after = plainPath(segment) == "/deployments"
	}
	return "", ""
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
