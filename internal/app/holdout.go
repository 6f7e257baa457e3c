package app

import (
	"context"
	"sync"
	"time"

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
	var all sync.WaitGroup
	tenants, asked := inForce{a}.Tenants(), make(chan struct{}, holdoutsAsked)
	found := make([]*holdout.Comparison, len(tenants))
	for i, t := range tenants {
		if t.Holdout == 0 {
			continue
		}
		asked <- struct{}{}
		all.Go(func() {
			defer func() { <-asked }()
			if experiment, err := a.engine.Experiment(ctx, t.Name, t.Holdout); err == nil {
				c := holdout.Compare(&experiment, t.Holdout)
				found[i] = &c
			}
		})
	}
	all.Wait()
	for i, c := range found {
		if c != nil && !yield(tenants[i].Name, *c) {
			return
		}
	}
}
