package admin

import (
	"net/http"
	"slices"
	"time"
)

type condenseBody struct {
	Pending bool   `json:"pending"`
	Next    string `json:"next"`
}

// condense requests a condensation of a thread. The thread's next request performs it, because only a request carries
// what a summary is made from.
func (a *api) condense(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	if err := a.checkCondensable(t.Tenant); err != nil {
		return nil, err
	}
	if t.Requested == 0 {
		if err := a.o.Archive.Request(r.Context(), t.ID, time.Now()); err != nil {
			return nil, replaceNotFound(err, errNoThread)
		}
	}
	return condenseBody{Pending: true, Next: "The thread's next request is condensed before it is forwarded, with the reason " +
		"'request', if it holds anything that may be forgotten. Otherwise this stays pending."}, nil
}

// checkCondensable rejects a request for a condensation that would stay pending forever.
func (a *api) checkCondensable(tenant string) error {
	tenants := a.o.Settings.Tenants()
	i := slices.IndexFunc(tenants, func(t Tenant) bool { return t.Name == tenant })
	if i < 0 {
		return fault(http.StatusConflict, "tenant_unknown", "The thread's tenant is no longer configured.")
	}
	switch t := &tenants[i]; {
	case t.Condensing.InForce == ModeOff:
		return fault(http.StatusConflict, "condensing_off", "Condensing is switched off for the thread's tenant. GET %s/condensing shows until when.", base)
	case t.Condensing.InForce == ModeObserve:
		return fault(http.StatusConflict, "tenant_observes", "The thread's tenant only observes, so nothing is condensed for it.")
	case !t.Condenses:
		return fault(http.StatusConflict, "condenser_forgets_nothing", "The tenant's condenser (%s) never makes a condensation.", t.Condenser)
	}
	return nil
}
