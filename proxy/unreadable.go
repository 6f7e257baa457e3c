package proxy

import "go.uber.org/zap"

// unreadable counts the summaries that could not be opened, since their key is not configured or they were changed. The
// history is forwarded without their condensations, and condensed anew when that is due.
func (s *Server) unreadable(t *turn) {
	for range t.place.Unreadable {
		s.o.Metrics.lost("summary_unreadable")
	}
	if t.place.Unreadable > 0 && !s.sealed.Swap(true) {
		s.o.Log.Error("a summary can not be read: is its key missing in store.encryption.keys? Said once, counted in store_losses_total",
			zap.String("tenant", t.tenant.Name), zap.String("thread", string(t.place.Thread.ID)))
	}
}
