package admin

import (
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// rewind takes h back to an earlier state if the request asks for one, by the number of messages (at) or by the ID of
// the request that brought them (request).
func (a *api) rewind(r *http.Request, q *query, h *history) error {
	at, id := q.number("at", 0, max(len(h.chain), 1)), q.text("request")
	if q.err != nil {
		return q.err
	}
	if at > 0 && id != "" {
		return badParam("at", "Give either a position or a request.")
	}
	if id != "" {
		places, err := a.o.Store.Trace(r.Context(), []session.Hash{session.RequestTrace(h.thread.Tenant, id)})
		if err != nil {
			return err //nolint:wrapcheck // it names its operation
		}
		at = places[0].Pos
		if places[0].Thread != h.thread.ID || at > len(h.chain) {
			return fault(http.StatusNotFound, "request_not_found",
				"The thread has no answered request with this ID. The log line of the request names its thread.")
		}
	}
	if at > 0 && at < len(h.chain) {
		h.rewind(at)
	}
	return nil
}

// rewind keeps the messages up to position at, the condensations that existed at that time, and the system messages of
// that time as far as the thread's own log has them.
func (h *history) rewind(at int) {
	end := h.thread.Seq + 1 // the first later entry of the thread's own log
	if i := slices.IndexFunc(h.own, func(e entry) bool { return e.Pos > at }); i >= 0 {
		logged := h.own[i].Time
		for i > 0 && h.own[i-1].Kind == session.System && h.own[i-1].Time.Equal(logged) {
			i-- // system messages of the same request
		}
		end = h.own[i].Seq
		if _, system := newestSystem(h.own[:i]); len(system) > 0 {
			h.system = system
		}
	}
	h.chain, h.thread.Len = h.chain[:at], at
	h.thread.Condensations = slices.DeleteFunc(slices.Clone(h.thread.Condensations), func(c session.Condensation) bool {
		return c.Prefix > at || c.ID.Thread == h.thread.ID && c.ID.Seq >= end
	})
}
