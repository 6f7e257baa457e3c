package proxy

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
