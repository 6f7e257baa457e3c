package admin

import (
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// rewind takes a log back to what it was when a history of fewer messages came, if a request asks for that: by the number of its
// messages, or by the id of the request that brought it.
func (a *api) rewind(r *http.Request, q *query, l *log) error {
	at, id := q.number("at", 0, 1, max(len(l.chain), 1)), q.text("request")
	switch {
	case q.err != nil:
		return q.err
	case at > 0 && id != "":
		return badParam("at", "Give a position or a request, not both.")
	case id != "":
		places, err := a.o.Store.Trace(r.Context(), []session.Hash{session.RequestTrace(l.thread.Tenant, id)})
		if err != nil {
			return err //nolint:wrapcheck // it names its operation
		}
		if at = places[0].Pos; places[0].Thread != l.thread.ID || at > len(l.chain) {
			return fault(http.StatusNotFound, "request_not_found",
				"The thread has no answered request of that id. The request's line in the log names its thread.")
		}
	}
	if at > 0 && at < len(l.chain) {
		l.rewind(at)
	}
	return nil
}

// rewind leaves the messages up to a position, the condensations that were made by then, and the system messages of that time, as far as
// the thread's own log has them.
func (l *log) rewind(at int) {
	end := l.thread.Seq + 1 // where what came later begins in the thread's own log
	if i := slices.IndexFunc(l.own, func(e entry) bool { return e.Pos > at }); i >= 0 {
		end = l.own[i].Seq
		for i > 0 && l.own[i-1].Kind == session.System && l.own[i-1].Time.Equal(l.own[i].Time) {
			i--
			end = l.own[i].Seq
		}
		if _, system := newestSystem(l.own[:i]); len(system) > 0 {
			l.system = system
		}
	}
	l.chain, l.thread.Len = l.chain[:at], at
	l.thread.Condensations = slices.DeleteFunc(slices.Clone(l.thread.Condensations), func(c session.Condensation) bool {
		return c.Prefix > at || c.ID.Thread == l.thread.ID && c.ID.Seq >= end
	})
}
