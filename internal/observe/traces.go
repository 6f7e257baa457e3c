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

// Traces sends spans to a collector.
type Traces struct {
	*Spans
	provider *sdk.TracerProvider
}

// OpenTraces sends spans to the collector configured by OpenTelemetry's environment variables. It returns nil if they do
// not enable traces. It calls exported for each batch, with nil if the collector accepted it.
func OpenTraces(getenv func(string) string, version string, exported func(error)) (*Traces, error) {
	if !otlp.Wanted(getenv) {
		return nil, nil
	}
	settings, err := otlp.FromEnv(getenv)
	if err != nil {
		return nil, fmt.Errorf("open traces: %w", err)
	}
	ctx := context.Background()
	exporter, err := otlptrace.New(ctx, otlp.NewClient(settings, exported))
	if err != nil {
		return nil, fmt.Errorf("open traces: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "dewpoint"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("open traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))
	return &Traces{NewSpans(provider), provider}, nil
}

// Shutdown sends the remaining spans. It gives up when ctx ends.
func (t *Traces) Shutdown(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Propagate wraps a transport so that each request carries the trace context of its span.
func Propagate(next http.RoundTripper) http.RoundTripper { return propagating{next} }

type propagating struct{ http.RoundTripper }

func (p propagating) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return p.RoundTripper.RoundTrip(r)
}
