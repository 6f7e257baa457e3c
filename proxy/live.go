package proxy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
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
	gates := map[string]*gate{}
	if earlier := s.live.Load(); earlier != nil {
		for _, t := range earlier.Tenants {
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
	s.live.Store(&live{Live: l, settings: settings, compactors: newCompactors(), managers: newCompactors()})
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
