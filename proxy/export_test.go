package proxy

// InFlight is how many request bytes the server holds.
func (s *Server) InFlight() int64 { return s.reader.budget.used.Load() }
