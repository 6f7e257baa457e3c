package proxy

import (
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// Live is the part of the configuration that can be replaced while the server runs. A request is served to its end under
// the one that it began with.
type Live struct {
	Tenants  *Tenants
	Dialects map[string]dialect.Dialect // by path below the base URL, e.g. /chat/completions
	Counts   map[string]dialect.Dialect // by path, likewise: asked for the tokens of a request, which is forwarded as the request would be
	Compacts map[string]dialect.Dialect // by path, likewise: asked for a history as one item; such a path ends in /compact, behind the dialect's own
	Models   func(name string) ModelInfo
	Headers  []string // that name a session; agents.SessionHeaders if empty
	Fields   []string // of the body, likewise
}

// live is a Live in force.
type live struct {
	tenants  *Tenants
	dialects map[string]dialect.Dialect
	counts   map[string]dialect.Dialect
	compacts map[string]dialect.Dialect
	models   func(name string) ModelInfo
	settings *engine.Settings

	compactors *compactors
	managers   *compactors
}

// Swap puts another configuration in force for the requests that come from now on.
func (s *Server) Swap(l Live) {
	l.Tenants.adopt(s.live.Load())
	settings := s.o.Engine.Swap(engine.Settings{
		Tenants: l.Tenants.forEngine(), Dialects: slices.Collect(maps.Values(l.Dialects)), Headers: l.Headers, Fields: l.Fields,
		Models: func(name string) engine.Model { return l.Models(name).Model },
	})
	s.live.Store(&live{
		tenants: l.Tenants, dialects: l.Dialects, counts: l.Counts, compacts: l.Compacts, models: l.Models,
		settings: settings, compactors: newCompactors(), managers: newCompactors(),
	})
}

// speaks gives the dialect that clients of a path understand: in whose shape they are told of errors, and where they send keys.
func (l *live) speaks(path string) dialect.Dialect {
	for served, d := range l.dialects {
		if path == served || strings.HasPrefix(path, served+"/") {
			return d
		}
	}
	return nil
}
