package admin

import (
	"net/http"
	"slices"
)

type condenseBody struct {
	Pending bool   `json:"pending"`
	Next    string `json:"next"`
}

// condense asks for a thread to be condensed. Only a request brings what a summary is made from, so the next one of the
// thread has it done.
func (a *api) condense(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	if err := a.able(t.Tenant); err != nil {
		return nil, err
	}
	if t.Requested == 0 {
		err = a.o.Archive.Request(r.Context(), t.ID, a.o.Now())
	}
	if err != nil {
		return nil, unless(err, noThread())
	}
	return condenseBody{Pending: true, Next: "The thread's next request is condensed before it is forwarded, with reason request, " +
		"as soon as there is something in it that may be forgotten. Until then this stays pending."}, nil
}

// able refuses what would stay pending for good.
func (a *api) able(tenant string) error {
	tenants := a.o.Settings.Tenants()
	at := slices.IndexFunc(tenants, func(t Tenant) bool { return t.Name == tenant })
	switch {
	case at < 0:
		return fault(http.StatusConflict, "tenant_unknown", "The thread's tenant is not configured any more.")
	case tenants[at].Condensing.InForce == ModeOff:
		return fault(http.StatusConflict, "condensing_off", "Condensing is switched off for the thread's tenant. GET %s/condensing says until when.", base)
	case tenants[at].Condensing.InForce == ModeObserve:
		return fault(http.StatusConflict, "tenant_observes", "The thread's tenant only observes: nothing is condensed for it.")
	case !tenants[at].Condenses:
		return fault(http.StatusConflict, "condenser_forgets_nothing", "The tenant's condenser (%s) never makes a condensation.", tenants[at].Condenser)
	}
	return nil
}
