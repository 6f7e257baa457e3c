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
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
)

// Live is the part of the configuration that can be replaced while the server runs. A request keeps the one that it began with.
//
// The keys of its maps are paths below the base URL, such as /chat/completions. A key may name the model, as in
// /models/{model}:generateContent. Anything may then precede it in a request's path.
type Live struct {
	Tenants  Tenants
	Refused  []Refused                  // tenants that cannot be served; looked up for keys that no tenant has
	Dialects map[string]dialect.Dialect // of requests for an answer
	Counts   map[string]dialect.Dialect // of requests for a token count. The counted request is forwarded as it would be for an answer
	Compacts map[string]dialect.Dialect // of requests that want their history back as one item; their path ends in /compact
	Plugs    map[string]plug.Wire       // of gateways that want a condensed history
	Models   func(name string) ModelInfo
	Origins  Origins  // whose pages may use the proxy in a browser
	Headers  []string // headers that name a session; agents.SessionHeaders if empty
	Fields   []string // fields of the body that name a session; agents.SessionFields if empty
}

// live is a Live in use.
type live struct {
	Live
	settings *engine.Settings
}

// Swap replaces the configuration for requests that come from now on. What a tenant has taken of its limits is kept.
func (s *Server) Swap(l Live) {
	gates := map[string]*gate{}
	if previous := s.live.Load(); previous != nil {
		for _, t := range previous.Tenants {
			gates[t.Name] = t.gate
		}
	}
	forEngine := make([]*engine.Tenant, len(l.Tenants))
	for i, t := range l.Tenants {
		t.gate = cmp.Or(t.gate, gates[t.Name], &gate{})
		forEngine[i] = &t.Tenant
	}
	settings := s.o.Engine.Swap(engine.Settings{
		Tenants: forEngine, Dialects: slices.Collect(maps.Values(l.Dialects)), Headers: l.Headers, Fields: l.Fields,
		Models: func(name string) engine.Model { return l.Models(name).Model },
	})
	s.live.Store(&live{l, settings})
}

// clientDialect returns the dialect that clients of a path use: it shapes the errors that they get, and says where they send keys. It is nil
// if the path is not below one that is served.
func (l *live) clientDialect(path string) dialect.Dialect {
	for served, d := range l.Dialects {
		if path == served || strings.HasPrefix(path, served+"/") || strings.Contains(served, modelName) && agents.Gemini(path) {
			return d
		}
	}
	return nil
}

// route is where a request goes below the base URL, and how its body is read.
type route struct {
	path          string          // as it goes upstream
	dialect       dialect.Dialect // nil: passed through
	counts        bool            // the client wants the number of tokens only
	compact       bool            // the client wants its history back as one item only
	plug          plug.Wire       // by which a gateway asks for a condensed history; nil: it is no such request
	reports       bool            // a gateway reports what a request has used
	tools         bool            // a client uses tools that read its own sessions
	clientDialect dialect.Dialect // nil: not known
	served        string          // the path at which the dialect is served
	deployment    string          // the path before served, as the client spelt it: of a deployment, in Azure's API
	named         string          // the path before served, as the client spelt it, with the name of the model at its end: in Gemini's API
	model         string          // the name of the deployment or of the model in the path; empty: none
	gemini        bool            // of Gemini's own API
	ambiguous     bool            // servers may read that name differently, so the request is forwarded unread
}

// route finds the route of a request. Servers decode, merge and drop parts of a path before they match it, each in its own way. So a path
// that any of them could take for a served one is served, and goes upstream in its plain spelling, except for the name of a deployment.
// Other paths go upstream as they are, without a leading /v1, which is part of the base URL.
func (l *live) route(method, path string) route {
	plain := plainPath(path)
	if plain == ToolsPath {
		return route{path: plain, tools: true}
	}
	found := route{clientDialect: l.clientDialect(plain)}
	if method == http.MethodPost {
		counts, compact := l.Counts[plain], l.Compacts[plain]
		if d := cmp.Or(counts, compact, l.Dialects[plain]); d != nil {
			return route{path: plain, dialect: d, clientDialect: d, served: plain, counts: counts != nil, compact: compact != nil}
		}
		if wire := l.Plugs[plain]; wire != nil {
			return route{path: plain, plug: wire}
		}
		if len(l.Plugs) > 0 && plain == plug.UsagePath {
			return route{path: plain, reports: true}
		}
		if found, is := l.named(path, plain); is {
			return found
		}
		prefix, name := agents.Deployment(plain)
		served := strings.TrimPrefix(plain, prefix)
		if d := l.Dialects[served]; d != nil {
			raw, model := deploymentName(path)
			found = route{dialect: d, clientDialect: d, served: served, model: model}
			found.deployment = strings.TrimSuffix(prefix, name) + raw
			found.ambiguous = strings.ToLower(model) != name
			if !found.ambiguous {
				found.path = found.deployment + served
				return found
			}
		}
	}
	path = withoutV1(path)
	found.path, found.gemini = path, agents.Gemini(path)
	return found
}

// withoutV1 returns a path without a leading /v1.
func withoutV1(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// modelName stands for the name of the model in a served path.
const modelName = "{model}"

// named finds the route of a path that ends in a method, such as /v1beta/models/gemini-3:generateContent. It goes upstream decoded once, with
// the method in its plain spelling. It is not read if servers may take it for another path.
func (l *live) named(path, plain string) (found route, is bool) {
	before, method, _ := cutLast(plain, ':')
	collection, name, _ := cutLast(before, '/')
	pattern := collection + "/" + modelName + ":" + method
	if _, last, ok := cutLast(pattern, '/'); !ok || name == "" || last == "" {
		return found, false
	}
	served, counts, d := l.servedAs(plain, pattern)
	if d == nil {
		return found, false
	}
	decoded, err := url.PathUnescape(path)
	for decoded != withoutV1(decoded) {
		decoded = withoutV1(decoded)
	}
	found = route{dialect: d, clientDialect: d, served: served, counts: counts, gemini: true}
	if found.ambiguous = err != nil || strings.ToLower(decoded) != plain; found.ambiguous {
		found.path = withoutV1(path)
		return found, true
	}
	before, _, _ = cutLast(decoded, ':')
	_, name, _ = cutLast(before, '/')
	_, method, _ = cutLast(served, ':')
	found.named = (&url.URL{Path: before}).EscapedPath()
	found.path = found.named + ":" + method
	if strings.Contains(served, modelName) {
		found.model = name
	}
	return found, true
}

// servedAs returns the served path that a path is, or whose pattern it ends in, and its dialect.
func (l *live) servedAs(plain, pattern string) (served string, counts bool, _ dialect.Dialect) {
	for i, all := range [...]map[string]dialect.Dialect{l.Dialects, l.Counts} {
		for key, d := range all {
			if strings.EqualFold(key, plain) || strings.Contains(key, modelName) && endsWithFold(pattern, key) {
				return key, i > 0, d
			}
		}
	}
	return "", false, nil
}

func endsWithFold(s, end string) bool {
	return len(s) >= len(end) && strings.EqualFold(s[len(s)-len(end):], end)
}

// cutLast cuts a text around the last separator.
func cutLast(s string, separator byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, separator)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// deploymentName finds the name of a deployment in a client's path: as it is spelt there, and as a server reads it that decodes once.
func deploymentName(path string) (raw, name string) {
	found := false
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' }) {
		if found {
			name, _ = url.PathUnescape(segment)
			return segment, name
		}
		found = plainPath(segment) == "/deployments"
	}
	return "", ""
}

// plainPath returns a path as the most lenient server reads it: decoded, in lower case, without empty segments, parameters of segments, and
// leading v1 segments.
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
