package app

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/internal/otlp"
)

// flushing is how long the last spans are waited for at most.
const flushing = 5 * time.Second

// openTraces makes the tracer if the environment asks for one; otherwise there is none, and nothing is paid for it.
func (a *App) openTraces() error {
	if !a.traced || !otlp.Wanted(os.Getenv) {
		return nil
	}
	settings, err := otlp.FromEnv(os.Getenv)
	if err != nil {
		return fmt.Errorf("open traces: %w", err)
	}
	ctx := context.Background()
	exporter, err := otlptrace.New(ctx, otlp.NewClient(settings, a.exported()))
	if err != nil {
		return fmt.Errorf("open traces: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "dewpoint"), attribute.String("service.version", a.version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(),
	)
	if err != nil {
		return fmt.Errorf("open traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))
	a.lifecycle.onStop("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushing)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			a.log.Warn("the last spans were lost", zap.Error(err))
		}
		return nil // a collector that is away is no failure of ours
	})
	a.tracer = provider.Tracer("github.com/dewpoint-proxy/dewpoint")
	return nil
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
