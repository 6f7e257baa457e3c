package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// spans are those of one traced request: of the request itself, and below it of its resolving, of each condensation and of
// each call upstream. All methods do nothing on nil, which is a request that is not traced. Nothing that a client or a
// model said is ever in one, nor a name that a client made up.
type spans struct {
	tracer   trace.Tracer
	server   trace.Span
	ctx      context.Context // carries server
	upstream trace.Span      // the call under way, nil: none
	of       *observation
}

// propagator reads and writes W3C trace contexts. Baggage passes as it is, with the other headers.
var propagator propagation.TraceContext

// beginSpans begins a request's span, below the one that the client told of.
func beginSpans(o *observation) *spans {
	r := o.request
	s := &spans{tracer: o.server.o.Tracer, of: o}
	parent := propagator.Extract(context.Background(), propagation.HeaderCarrier(r.header))
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(methodName(r.asked.method)), attribute.String("dewpoint.tenant", r.tenant.Name),
	}
	name := methodName(r.asked.method)
	if r.asked.dialect != nil {
		name += " " + r.asked.path // one of those that dialects have
		attributes = append(attributes, semconv.HTTPRoute(r.asked.path), attribute.String("dewpoint.dialect", r.asked.dialect.Name()))
	}
	s.ctx, s.server = s.tracer.Start(parent, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(o.begun),
		trace.WithAttributes(attributes...))
	return s
}

// methodName is a method that everybody knows, as the conventions demand.
func methodName(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY":
		return method
	}
	return "_OTHER"
}

// context gives ctx the request's span.
func (s *spans) context(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.server)
}

// id is the trace's id if it is recorded, empty if not.
func (s *spans) id() string {
	if s == nil || !s.server.SpanContext().IsSampled() {
		return ""
	}
	return s.server.SpanContext().TraceID().String()
}

// named is when the request's model is known.
func (s *spans) named(n seriesName) {
	if s != nil {
		s.server.SetAttributes(semconv.GenAIRequestModel(n.model))
	}
}

// resolved is when the request's thread is known, or can not be.
func (s *spans) resolved(err error) {
	if s == nil {
		return
	}
	_, span := s.tracer.Start(s.ctx, "resolve", trace.WithTimestamp(s.of.read))
	defer span.End()
	if err != nil {
		fail(span, "store_away")
		return
	}
	p := s.of.turn.Place()
	span.SetAttributes(attribute.String("dewpoint.source", string(p.Source)), attribute.Bool("dewpoint.thread.new", p.New))
	s.server.SetAttributes(
		semconv.GenAIConversationID(string(p.Thread.Session)), attribute.String("dewpoint.thread", string(p.Thread.ID)),
	)
}

// condensing begins the span of a condensation. The function that it returns ends it; made is what came of it.
func (s *spans) condensing(ctx context.Context, condenser string, need condense.Need) (context.Context, func(made []engine.Condensed)) {
	if s == nil {
		return ctx, func([]engine.Condensed) {}
	}
	ctx, span := s.tracer.Start(trace.ContextWithSpan(ctx, s.server), "condense", trace.WithAttributes(
		attribute.String("dewpoint.condenser", condenser),
		attribute.String("dewpoint.reason", string(need.Reason)), attribute.Bool("dewpoint.hard", need.Hard),
	))
	return ctx, func(made []engine.Condensed) {
		defer span.End()
		span.SetAttributes(attribute.Bool("dewpoint.condensed", len(made) > 0))
		for _, c := range made {
			span.SetAttributes(
				attribute.Int("dewpoint.tokens.before", c.Before), attribute.Int("dewpoint.tokens.after", c.After),
				attribute.Int("dewpoint.events.forgotten", c.Events),
			)
		}
	}
}

// sending begins the span of a call upstream, and names it to upstream.
func (s *spans) sending(r *request) {
	if s == nil {
		return
	}
	s.endUpstream()
	name := methodName(r.asked.method)
	attributes := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(name)}
	if r.asked.dialect != nil {
		name = chatName(s.of.name.model)
		attributes = append(attributes, callAttributes(s.of.name.model, r.tenant.Upstream.BaseURL)...)
		if t := s.of.turn; t != nil {
			attributes = append(attributes, semconv.GenAIConversationID(string(t.Place().Thread.Session)))
		}
	} else {
		attributes = append(attributes, serverAttributes(r.tenant.Upstream.BaseURL)...)
	}
	ctx, span := s.tracer.Start(s.ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	s.upstream = span
	r.header.Del("Traceparent")
	r.header.Del("Tracestate") // what was valid of it is in the context
	propagator.Inject(ctx, propagation.HeaderCarrier(r.header))
}

// answered is when upstream's header has come, or will not.
func (s *spans) answered(resp *http.Response, err error) {
	switch {
	case s == nil:
	case err == nil:
		s.upstream.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			fail(s.upstream, strconv.Itoa(resp.StatusCode))
		}
	default:
		var e *apiError
		code := codeClientGone
		if errors.As(err, &e) {
			code = e.Code
		}
		fail(s.upstream, code)
		s.endUpstream()
	}
}

// firstByte is when the answer's first bytes have come.
func (s *spans) firstByte() {
	if s != nil && s.upstream != nil {
		s.upstream.AddEvent("first_byte")
		s.upstream.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(s.of.first.Sub(s.of.sent).Seconds()))
	}
}

func (s *spans) endUpstream() {
	if s.upstream != nil {
		s.upstream.End()
		s.upstream = nil
	}
}

// end ends the request's span, and what is still open below it.
func (s *spans) end(o *observation) {
	if s == nil {
		return
	}
	s.server.SetAttributes(semconv.HTTPResponseStatusCode(o.status))
	if t := o.turn; t != nil {
		s.server.SetAttributes(
			attribute.Int("dewpoint.events.before", t.Before().Events), attribute.Int("dewpoint.tokens.before", t.Before().Tokens),
			attribute.Int("dewpoint.events.after", o.after.Events), attribute.Int("dewpoint.tokens.after", o.after.Tokens),
		)
	}
	if s.upstream != nil {
		if o.usage != nil {
			s.upstream.SetAttributes(usageAttributes(*o.usage)...)
		}
		if o.code == codeBroken || o.code == codeClientGone {
			fail(s.upstream, o.code)
		}
	}
	// A client's fault is no fault of the server (HTTP conventions): its span has the code, and no error.
	if o.code != "" {
		s.server.SetAttributes(semconv.ErrorTypeKey.String(o.code))
	}
	if o.status >= http.StatusInternalServerError || o.code == codeBroken {
		s.server.SetStatus(codes.Error, o.code)
	}
	s.endUpstream()
	s.server.End()
}

// fail marks a span as failed. The code is one of ours, or a status.
func fail(span trace.Span, code string) {
	span.SetStatus(codes.Error, code)
	span.SetAttributes(semconv.ErrorTypeKey.String(code))
}

// chatName is the name of a call's span: of an unknown model it says no more than that.
func chatName(model string) string {
	if model == "" {
		return "chat"
	}
	return "chat " + model
}

// callAttributes describe a call of a model.
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

// provider is who serves a model, by its host's name; one that nobody knows speaks OpenAI's protocol.
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
