package app

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// calls is how our own calls go out, and who takes note of them. On nil they go out by default, unnoted.
type calls struct {
	transport http.RoundTripper
	metrics   *proxy.Metrics // nil: nobody takes note
	tracer    trace.Tracer   // nil: not traced
}

func (c *calls) client() *http.Client {
	switch {
	case c == nil:
		return &http.Client{}
	case c.tracer == nil:
		return &http.Client{Transport: c.transport}
	}
	return &http.Client{Transport: traced{c.transport}}
}

// noted makes a tenant's summariser one whose calls are taken note of.
func (c *calls) noted(s condense.Summariser, tenant string, models func(string) proxy.ModelInfo) condense.Summariser {
	if c == nil || c.metrics == nil {
		return s
	}
	return proxy.Summariser{Summariser: s, Tenant: tenant, Metrics: c.metrics, Tracer: c.tracer, Models: models}
}

// traced passes the span of a call on to its server.
type traced struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return t.RoundTripper.RoundTrip(r)
}
