package app

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
)

// A scrape of the metrics asks the store for all holdouts within this time, some of them at once.
const (
	holdoutWait   = time.Second
	holdoutsAsked = 16
)

// holdouts yields what the tenants that hold sessions out have found so far, for metrics. One whose experiment cannot be read in time is
// left out.
func (a *App) holdouts(yield func(tenant string, c holdout.Comparison) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), holdoutWait)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(holdoutsAsked)
	tenants := a.tokens.config.Load().EveryTenant()
	found := make([]*holdout.Comparison, len(tenants))
	for i, t := range tenants {
		if t.Holdout == 0 {
			continue
		}
		all.Go(func() error {
			if experiment, err := a.engine.Experiment(ctx, t.Name, t.Holdout); err == nil {
				c := holdout.Compare(&experiment, t.Holdout)
				found[i] = &c
			}
			return nil
		})
	}
	_ = all.Wait()
	for i, c := range found {
		if c != nil && !yield(tenants[i].Name, *c) {
			return
		}
	}
}
