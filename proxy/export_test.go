package proxy

import "net/url"

// InFlight is how many request bytes the server holds.
func (s *Server) InFlight() int64 { return s.reader.budget.used.Load() }

// Busy is how many requests of a tenant are under way.
func (s *Server) Busy(tenant string) int64 {
	for _, t := range s.live.Load().tenants.tenants {
		if t.Name == tenant {
			return t.gate.busy.Load()
		}
	}
	return -1
}

// Bases are the tenants' upstreams.
func (t *Tenants) Bases() (all []*url.URL) {
	for _, tenant := range t.tenants {
		all = append(all, tenant.Upstream.BaseURL)
	}
	return all
}
