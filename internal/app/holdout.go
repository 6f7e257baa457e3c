package app

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
)

// holdouts yields what the tenants that hold sessions out have found so far, for metrics. One whose experiment cannot be read is left out.
func (a *App) holdouts(yield func(tenant string, c holdout.Comparison) bool) {
	for _, t := range (inForce{a}).Tenants() {
		if t.Holdout == 0 {
			continue
		}
		experiment, err := a.engine.Experiment(context.Background(), t.Name, t.Holdout)
		if err == nil && !yield(t.Name, holdout.Compare(&experiment, t.Holdout)) {
			return
		}
	}
}
