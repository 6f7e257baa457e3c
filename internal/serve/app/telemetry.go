package app

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
)

// flushTimeout bounds how long stopping waits for the last spans.
const flushTimeout = 5 * time.Second

// openTraces starts tracing if the environment enables it. Otherwise it returns nil.
func (a *App) openTraces() (*observe.Spans, error) {
	if !a.options.Traced {
		return nil, nil
	}
	spans, stop, err := observe.OpenTraces(os.Getenv, a.options.Version, a.reportExports())
	if err != nil || spans == nil {
		return nil, err
	}
	a.onStop("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := stop(ctx); err != nil {
			a.log.Warn("the last spans were lost", zap.Error(err))
		}
		return nil // an unreachable collector does not make stopping fail
	})
	return spans, nil
}

// reportExports returns a function that counts batches that the collector did not accept. It logs when failures start and
// when they end.
func (a *App) reportExports() func(error) {
	var failing atomic.Bool
	return func(err error) {
		if err == nil {
			if failing.Swap(false) {
				a.log.Info("trace export works again")
			}
			return
		}
		a.metrics.ExportFailed()
		if !failing.Swap(true) {
			a.log.Warn("traces are lost", zap.Error(err))
		}
	}
}

// storeTimeout bounds reading all holdouts, and all budgets, from the store for a scrape of the metrics.
const storeTimeout = time.Second

// holdouts yields the results so far of tenants that hold sessions out. It skips those whose results cannot be read in time.
func (a *App) holdouts(yield func(tenant string, c holdout.Comparison) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	for _, t := range a.tokens.config.Load().EveryTenant() {
		h := compared(t)
		if h.Share == 0 {
			continue
		}
		experiment, err := a.engine.Experiment(ctx, t.Name, h)
		if err == nil && !yield(t.Name, holdout.Compare(&experiment, h)) {
			return
		}
	}
}

// budgets yields what is spent of the tenants' budgets, in each of their units. It skips those that cannot be read in time.
func (a *App) budgets(yield func(tenant string, s engine.Spending) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	cfg := a.tokens.config.Load()
	for _, t := range cfg.EveryTenant() {
		all, err := a.engine.Spending(ctx, engine.Budget{Budget: cfg.LimitsFor(t).Budget, Tenant: t.Name}, time.Now())
		if err != nil {
			continue
		}
		for _, s := range all {
			if !yield(t.Name, s) {
				return
			}
		}
	}
}
