package app

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

// flushing is how long the last spans are waited for at most.
const flushing = 5 * time.Second

// openTraces begins to trace if the environment asks for it; otherwise nothing is paid for it.
func (a *App) openTraces() (*observe.Spans, error) {
	if !a.options.Traced {
		return nil, nil // nothing is traced
	}
	traces, err := observe.OpenTraces(os.Getenv, a.options.Version, a.exported())
	if err != nil || traces == nil {
		return nil, err
	}
	a.onStop("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushing)
		defer cancel()
		if err := traces.Shutdown(ctx); err != nil {
			a.log.Warn("the last spans were lost", zap.Error(err))
		}
		return nil // a collector that is away is no failure of ours
	})
	return traces.Spans, nil
}

// exported counts the batches that the collector did not take, and logs once each way.
func (a *App) exported() func(error) {
	var away atomic.Bool
	return func(err error) {
		switch {
		case err == nil && away.Swap(false):
			a.log.Info("traces are taken again")
		case err != nil:
			a.metrics.ExportFailed()
			if !away.Swap(true) {
				a.log.Warn("traces are lost", zap.Error(err))
			}
		}
	}
}

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
