package admin

import (
	"fmt"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
)

type holdoutBody struct {
	Tenant string  `json:"tenant"`
	Share  float64 `json:"share"`
	holdout.Comparison
}

// holdouts compares the cost of held-out and condensed sessions for each tenant that holds sessions out.
func (a *api) holdouts(r *http.Request, _ *query) (any, error) {
	list := []holdoutBody{}
	for _, t := range a.o.Settings.Tenants() {
		if t.Holdout == 0 {
			continue
		}
		experiment, err := a.o.Forwarder.Experiment(r.Context(), t.Name, t.Holdout)
		if err != nil {
			return nil, fmt.Errorf("read holdout of tenant %s: %w", t.Name, err)
		}
		list = append(list, holdoutBody{t.Name, t.Holdout, holdout.Compare(&experiment, t.Holdout)})
	}
	return map[string][]holdoutBody{"holdouts": list}, nil
}
