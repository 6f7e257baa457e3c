package app

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

// flushing is how long the last spans are waited for at most.
const flushing = 5 * time.Second

// openTraces begins to trace if the environment asks for it; otherwise nothing is paid for it.
func (a *App) openTraces() (*observe.Spans, error) {
	if !a.options.Traced {
		return nil, nil //nolint:nilnil // nothing is traced
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
