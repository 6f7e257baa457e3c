package proxy

import "github.com/dewpoint-proxy/dewpoint/dialect"

// Live is the part of the configuration that can be replaced while the server runs. A request is served to its end under
// the one that it began with.
type Live struct {
	Tenants  *Tenants
	Dialects map[string]dialect.Dialect // by path below the base URL, e.g. /chat/completions
	Models   func(name string) ModelInfo
	Headers  []string // that name a session; DefaultSessionHeaders if empty
	Fields   []string // of the body, likewise
}

// live is a Live in force.
type live struct {
	tenants  *Tenants
	dialects map[string]dialect.Dialect
	models   func(name string) ModelInfo
	identify identifier
	meters   map[*Tenant]*meters
}

// Swap puts another configuration in force for the requests that come from now on.
func (s *Server) Swap(l Live) {
	if len(l.Headers) == 0 {
		l.Headers = DefaultSessionHeaders()
	}
	if len(l.Fields) == 0 {
		l.Fields = DefaultSessionFields()
	}
	l.Tenants.adopt(s.live.Load())
	s.learnt.windows.Purge() // they may have been another upstream's
	s.live.Store(&live{
		tenants: l.Tenants, dialects: l.Dialects, models: l.Models,
		identify: identifier{headers: l.Headers, fields: l.Fields},
		meters:   s.o.Metrics.of(l.Tenants),
	})
}
