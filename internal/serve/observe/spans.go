package observe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/otlp"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Spans creates the spans of requests: a span for the request, with children for finding its thread, for each condensation
// and for each call upstream. Spans never contain text of a client or a model, or a name that a client chose.
type Spans struct{ tracer trace.Tracer }

var _ proxy.Tracer = (*Spans)(nil)

// scope is the instrumentation scope of the spans.
const scope = "github.com/dewpoint-proxy/dewpoint"

// NewSpans returns Spans that record with a provider.
func NewSpans(p trace.TracerProvider) *Spans { return &Spans{p.Tracer(scope)} }

func (s *Spans) Request(ctx context.Context, r *proxy.Record, header http.Header) context.Context {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
	name := methodName(r.Asked.Method)
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(name), attribute.String("dewpoint.tenant", r.Tenant),
	}
	if r.Asked.Path != "" {
		name += " " + r.Asked.Path
		attributes = append(attributes, semconv.HTTPRoute(r.Asked.Path), attribute.String("dewpoint.dialect", r.Dialect))
	}
	ctx, _ = s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(r.Times.Begun),
		trace.WithAttributes(attributes...))
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		r.Asked.Trace = span.TraceID().String()
	}
	return ctx
}

func (s *Spans) Condensing(ctx context.Context, condenser string, need condense.Need) (context.Context, func([]session.Condensation)) {
	ctx, span := s.tracer.Start(ctx, "condense", trace.WithAttributes(
		attribute.String("dewpoint.condenser", condenser),
		attribute.String("dewpoint.reason", string(need.Reason)), attribute.Bool("dewpoint.hard", need.Hard),
	))
	return ctx, func(made []session.Condensation) {
		defer span.End()
		span.SetAttributes(attribute.Bool("dewpoint.condensed", len(made) > 0))
		for _, c := range made {
			span.SetAttributes(
				attribute.Int("dewpoint.tokens.before", c.Before.Tokens), attribute.Int("dewpoint.tokens.after", c.After.Tokens),
				attribute.Int("dewpoint.events.forgotten", c.Before.Events-c.After.Events),
			)
		}
	}
}

func (s *Spans) Sending(ctx context.Context, r *proxy.Record, header http.Header) func(*proxy.Record) {
	name := methodName(r.Asked.Method)
	attributes := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(name)}
	if r.Asked.Path != "" {
		name = chatName(r.Model)
		attributes = append(attributes, callAttributes(r.Model, r.Upstream)...)
	} else {
		attributes = append(attributes, serverAttributes(r.Upstream)...)
	}
	if r.Turn != nil {
		attributes = append(attributes, semconv.GenAIConversationID(string(r.Turn.Session)))
	}
	ctx, span := s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	header.Del("Traceparent") // the context has these values if they were valid
	header.Del("Tracestate")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	return func(r *proxy.Record) { endCall(span, r) }
}

// endCall ends the span of a call upstream.
func endCall(span trace.Span, r *proxy.Record) {
	defer span.End()
	c := &r.Call
	if c.Status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(c.Status))
	}
	if !c.First.IsZero() {
		span.AddEvent("first_byte", trace.WithTimestamp(c.First))
		span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(c.First.Sub(c.Sent).Seconds()))
	}
	if c.Usage != nil {
		span.SetAttributes(usageAttributes(*c.Usage)...)
	}
	switch {
	case c.Code != "":
		fail(span, c.Code)
	case r.Code == proxy.CodeBroken, r.Code == proxy.CodeClientGone:
		fail(span, r.Code)
	case c.Status >= http.StatusBadRequest:
		fail(span, strconv.Itoa(c.Status))
	}
}

// endRequest ends the span of a request if it is recorded.
func endRequest(ctx context.Context, r *proxy.Record) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	endResolve(ctx, span, r)
	span.SetAttributes(semconv.HTTPResponseStatusCode(r.Status), attribute.String("dewpoint.request_id", r.Asked.ID))
	if did := r.Condensed.Did; did != "" {
		span.SetAttributes(attribute.String("dewpoint.condense", did))
	}
	if r.Model != "" {
		span.SetAttributes(semconv.GenAIRequestModel(r.Model))
	}
	if t := r.Turn; t != nil {
		span.SetAttributes(
			semconv.GenAIConversationID(string(t.Session)), attribute.String("dewpoint.thread", string(t.Thread)),
			attribute.Int("dewpoint.events.before", t.Before.Events), attribute.Int("dewpoint.tokens.before", t.Before.Tokens),
			attribute.Int("dewpoint.events.after", t.After.Events), attribute.Int("dewpoint.tokens.after", t.After.Tokens),
		)
	}
	// By the HTTP conventions a client's error is not an error of the server: its span has the code, but no error status.
	if r.Code != "" {
		span.SetAttributes(semconv.ErrorTypeKey.String(r.Code))
	}
	if r.Status >= http.StatusInternalServerError || r.Code == proxy.CodeBroken {
		span.SetStatus(codes.Error, r.Code)
	}
	span.End(trace.WithTimestamp(r.Times.Ended))
}

// endResolve records the span of the time in which a request's thread was found, as a child of parent.
func endResolve(ctx context.Context, parent trace.Span, r *proxy.Record) {
	if r.Times.Resolved.IsZero() {
		return
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(ctx, "resolve", trace.WithTimestamp(r.Times.Read))
	defer span.End(trace.WithTimestamp(r.Times.Resolved))
	if r.Turn == nil {
		fail(span, "store_away")
		return
	}
	span.SetAttributes(attribute.String("dewpoint.source", string(r.Turn.Source)), attribute.Bool("dewpoint.thread.new", r.Turn.Relation.Kind.Begins()))
}

// methodName returns a standard method unchanged, and _OTHER for any other, as the HTTP conventions require.
func methodName(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY":
		return method
	}
	return "_OTHER"
}

// fail marks a span as failed. The code is an error code or an HTTP status.
func fail(span trace.Span, code string) {
	span.SetStatus(codes.Error, code)
	span.SetAttributes(semconv.ErrorTypeKey.String(code))
}

// chatName returns the name of the span of a model call.
func chatName(model string) string { return strings.TrimSuffix("chat "+model, " ") }

// callAttributes describes a call to a model.
func callAttributes(model string, base *url.URL) []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.GenAIOperationNameChat, provider(base.Hostname())}
	if model != "" {
		attributes = append(attributes, semconv.GenAIRequestModel(model))
	}
	return append(attributes, serverAttributes(base)...)
}

func serverAttributes(base *url.URL) []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.ServerAddress(base.Hostname())}
	if port, err := strconv.Atoi(base.Port()); err == nil {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	return attributes
}

func usageAttributes(u session.Usage) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(u.Input), semconv.GenAIUsageOutputTokens(u.Output),
		semconv.GenAIUsageCacheReadInputTokens(u.Cached),
	}
}

// provider returns the provider for a host name. An unknown host counts as OpenAI, since it speaks that protocol.
func provider(host string) attribute.KeyValue {
	for _, known := range [...]struct {
		suffix string
		name   attribute.KeyValue
	}{
		{"anthropic.com", semconv.GenAIProviderNameAnthropic},
		{"openai.azure.com", semconv.GenAIProviderNameAzureAIOpenAI},
		{"generativelanguage.googleapis.com", semconv.GenAIProviderNameGCPGemini},
		{"aiplatform.googleapis.com", semconv.GenAIProviderNameGCPVertexAI},
		{"deepseek.com", semconv.GenAIProviderNameDeepseek},
		{"groq.com", semconv.GenAIProviderNameGroq},
		{"mistral.ai", semconv.GenAIProviderNameMistralAI},
		{"perplexity.ai", semconv.GenAIProviderNamePerplexity},
		{"x.ai", semconv.GenAIProviderNameXAI},
	} {
		if host == known.suffix || strings.HasSuffix(host, "."+known.suffix) {
			return known.name
		}
	}
	return semconv.GenAIProviderNameOpenAI
}

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
