package observe

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dewpoint-proxy/dewpoint/internal/otlp"
)

// OpenTraces returns spans that are sent to the collector configured by OpenTelemetry's environment variables. It returns nil if they
// do not enable traces. It calls exported for each batch, with nil if the collector accepted it. stop sends the remaining spans, and
// gives up when its context ends.
func OpenTraces(getenv func(string) string, version string, exported func(error)) (_ *Spans, stop func(context.Context) error, err error) {
	if !otlp.Wanted(getenv) {
		return nil, nil, nil
	}
	settings, err := otlp.FromEnv(getenv)
	if err != nil {
		return nil, nil, fmt.Errorf("open traces: %w", err)
	}
	ctx := context.Background()
	exporter, err := otlptrace.New(ctx, otlp.NewClient(settings, exported))
	if err != nil {
		return nil, nil, fmt.Errorf("open traces: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "dewpoint"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("open traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))
	return NewSpans(provider), provider.Shutdown, nil
}

// Propagator adds the trace context of its span to each request.
type Propagator struct{ http.RoundTripper }

func (p Propagator) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return p.RoundTripper.RoundTrip(r)
}
