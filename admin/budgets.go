package admin

import (
	"fmt"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
)

// budgetBody is a budget in one unit, and what is spent of it in the current period.
type budgetBody struct {
	Tenant string    `json:"tenant"`
	Unit   string    `json:"unit"`
	Limit  float64   `json:"limit"`
	Spent  float64   `json:"spent"`
	Held   float64   `json:"held"` // for requests under way
	Period string    `json:"period"`
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"`
}

type budgetList struct {
	Budgets []budgetBody `json:"budgets"`
}

// budgets lists the budgets of the tenants.
func (a *api) budgets(r *http.Request, _ *query) (any, error) { return a.budgetsOf(r) }

// budgetsOf lists the budgets of the tenants that the request may see.
func (a *api) budgetsOf(r *http.Request) (budgetList, error) {
	list := budgetList{Budgets: []budgetBody{}}
	for _, t := range a.tenantsOf(who(r)) {
		if err := a.addBudget(r, &list, engine.Budget{Budget: t.Limits.Budget, Tenant: t.Name}); err != nil {
			return budgetList{}, err
		}
	}
	return list, nil
}

// sessionBudgets lists the budgets of a session.
func (a *api) sessionBudgets(r *http.Request, q *query) (any, error) {
	ses, _, err := a.sessionAt(r, q)
	if err != nil {
		return nil, err
	}
	list := budgetList{Budgets: []budgetBody{}}
	for _, t := range a.o.Settings.Tenants() {
		if t.Name == ses.Tenant {
			err = a.addBudget(r, &list, engine.Budget{Budget: t.Limits.SessionBudget, Tenant: t.Name, Session: ses.ID})
		}
	}
	return list, err
}

func (a *api) addBudget(r *http.Request, list *budgetList, b engine.Budget) error {
	all, err := a.o.Forwarder.Spending(r.Context(), b, time.Now())
	if err != nil {
		return fmt.Errorf("read budget of tenant %s: %w", b.Tenant, err)
	}
	for _, s := range all {
		list.Budgets = append(list.Budgets, budgetBody{b.Tenant, s.Unit, s.Limit, s.Spent, s.Held, b.Period.String(), s.Begin, s.End})
	}
	return nil
}
