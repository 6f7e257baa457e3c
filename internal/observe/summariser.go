package observe

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Summariser is a summariser whose calls are measured, priced and traced, apart from its tenant's own requests.
type Summariser struct {
	condense.Summariser
	Tenant  string
	Warming bool // its calls keep caches warm, and are no summaries
	Metrics *Metrics
	Spans   *Spans // nil: not traced
	Models  func(name string) proxy.ModelInfo
}

var _ condense.Summariser = Summariser{}

func (s Summariser) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	info := s.Models(r.Model)
	if info.Name == "" {
		info.Name = proxy.OtherModel
	}
	ctx, span := s.span(ctx, info.Name, r.Endpoint.BaseURL)
	begun := time.Now()
	reply, err := s.Summariser.Summarise(ctx, r)
	if s.Warming {
		s.Metrics.spent(s.Tenant, info, reply.Usage, "keep_warm")
	} else {
		s.Metrics.ownCall(s.Tenant, info, reply, err, time.Since(begun))
	}
	c := billed(r, reply, err)
	c.USD = info.Price.Call(model.Usage{Input: c.Input, Cached: c.Cached, Written: c.Written, Output: c.Output})
	c.Known = info.Price.Known() && c.Input > 0
	limit.Bill(ctx, c)
	if span == nil {
		return reply, err
	}
	defer span.End()
	if err != nil {
		fail(span, string(failureOf(err)))
		return reply, err
	}
	span.SetAttributes(usageAttributes(reply.Usage)...)
	return reply, nil
}

// billed is what a call took. One that failed took its prompt, where the server may have read it all and still not answered; where it
// refused, or was not reached, nothing.
func billed(r condense.Request, reply condense.Reply, err error) limit.Call {
	c := limit.Call{Model: r.Model, Failed: err != nil}
	if err == nil {
		u := reply.Usage
		c.Input, c.Cached, c.Written, c.Output = max(u.Input, 0), max(u.Cached, 0), max(u.Written, 0), max(u.Output, 0)
		return c
	}
	switch failureOf(err) {
	case condense.FailureTimeout, condense.FailureDeadline, condense.FailureCanceled, condense.FailureMalformed:
		c.Input = r.Size() / 4
	}
	return c
}

// span begins the call's span, nil where nothing is traced.
func (s Summariser) span(ctx context.Context, model, base string) (context.Context, trace.Span) {
	if s.Spans == nil {
		return ctx, nil
	}
	at, err := url.Parse(base)
	if err != nil {
		at = &url.URL{}
	}
	return s.Spans.tracer.Start(ctx, chatName(model), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(callAttributes(model, at)...))
}

func failureOf(err error) condense.Failure {
	var call *condense.CallError
	if errors.As(err, &call) {
		return call.Kind
	}
	return condense.FailureMalformed
}

// ownCall meters a call of a summariser, whatever is made of its reply.
func (m *Metrics) ownCall(tenant string, info proxy.ModelInfo, reply condense.Reply, err error, took time.Duration) {
	if err != nil {
		m.own.seconds.WithLabelValues(tenant, "failed").Observe(took.Seconds())
		m.own.failures.WithLabelValues(tenant, string(failureOf(err))).Inc()
		return
	}
	m.own.seconds.WithLabelValues(tenant, "replied").Observe(took.Seconds())
	u := reply.Usage
	m.own.tokens.WithLabelValues(tenant, info.Name, "prompt").Add(float64(max(u.Input, 0)))
	m.own.tokens.WithLabelValues(tenant, info.Name, "cached").Add(float64(max(u.Cached, 0)))
	m.own.tokens.WithLabelValues(tenant, info.Name, "completion").Add(float64(max(u.Output, 0)))
	m.spent(tenant, info, u, "summariser")
}

// spent adds a call of ours to what condensing costs.
func (m *Metrics) spent(tenant string, info proxy.ModelInfo, u session.Usage, kind string) {
	m.savings.spentTokens.WithLabelValues(tenant, info.Name, kind).Add(float64(max(u.Input+u.Output, 0)))
	m.savings.spentUSD.WithLabelValues(tenant, info.Name, kind).Add(max(info.Price.Call(model.Usage(u)), 0))
}

// Warmed counts a touch that keeps a prompt in its provider's cache.
func (m *Metrics) Warmed(tenant string, outcome engine.WarmOutcome) {
	m.own.warmed.WithLabelValues(tenant, string(outcome)).Inc()
}
