package observe

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Summariser wraps a summariser to measure, price and trace its calls, separately from the tenant's requests.
type Summariser struct {
	condense.Summariser
	Tenant  string
	NoModel bool // a service replies that uses no tokens
	Metrics *Metrics
	Spans   *Spans // nil: calls are not traced
	Models  func(name string) proxy.ModelInfo
}

var _ condense.Summariser = Summariser{}

func (s Summariser) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	info := s.Models(r.Model)
	info.Name = cmp.Or(info.Name, proxy.OtherModel)
	ctx, span := s.span(ctx, info.Name, r.Endpoint.BaseURL)
	begun := time.Now()
	reply, err := s.Summariser.Summarise(ctx, r)
	s.Metrics.countCall(s.Tenant, info, reply.Usage, err, time.Since(begun))
	var u model.Usage
	if !s.NoModel {
		u = usageOf(r, reply, err)
	}
	c := limit.Call{
		Model: r.Model, Input: u.Input, Cached: u.Cached, Written: u.Written, Long: u.WrittenLong, Output: u.Output,
		USD: info.Price.Call(u), Pico: info.Price.Pico(u), Known: s.NoModel || info.Price.Known(), Failed: err != nil,
		Plan: limit.OfPlan(ctx, r.Endpoint.APIKey),
	}
	if c.Charged() {
		s.Metrics.savings.spentTokens.WithLabelValues(s.Tenant, info.Name, "summariser").Add(float64(c.Input + c.Output))
	}
	if c.Charged() && !c.Plan {
		s.Metrics.savings.spentUSD.WithLabelValues(s.Tenant, info.Name, "summariser").Add(max(c.USD, 0))
	}
	if w := s.Metrics.watcher; w != nil {
		w.Called(c)
	}
	limit.Bill(ctx, c)
	defer span.End()
	if err != nil {
		fail(span, string(failureKind(err)))
		return reply, err
	}
	span.SetAttributes(usageAttributes(reply.Usage)...)
	return reply, nil
}

// usageOf returns the usage of a call, estimated if the reply does not report it. A failed call counts its prompt if the
// server may have read it, and what had arrived of the answer. It counts nothing if the server refused the call or was not
// reached.
func usageOf(r condense.Request, reply condense.Reply, err error) model.Usage {
	prompt := r.Size() / 4
	if call, ok := errors.AsType[*condense.CallError](err); ok && call.Begun != nil {
		u := usageOf(r, *call.Begun, nil)
		u.Output = max(u.Output, (len(call.Begun.Text)+len(call.Begun.Arguments))/4) // a report before the end may be too low
		return u
	}
	if u := reply.Usage; err == nil && (u.Input > 0 || u.Output > 0) {
		return model.Usage{
			Input: max(u.Input, 0), Cached: max(u.Cached, 0), Output: max(u.Output, 0),
			Written: max(u.Written, 0), WrittenLong: max(u.WrittenLong, 0),
		}
	}
	if err == nil {
		return model.Usage{Input: prompt, Output: len(reply.Text) / 4}
	}
	switch failureKind(err) {
	case condense.FailureTimeout, condense.FailureDeadline, condense.FailureCanceled, condense.FailureMalformed:
		return model.Usage{Input: prompt}
	}
	return model.Usage{}
}

// span starts the span of a call. It returns one that records nothing if calls are not traced.
func (s Summariser) span(ctx context.Context, model, base string) (context.Context, trace.Span) {
	if s.Spans == nil {
		return ctx, noop.Span{}
	}
	at, err := url.Parse(base)
	if err != nil {
		at = &url.URL{}
	}
	return s.Spans.tracer.Start(ctx, chatName(model), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(callAttributes(model, at)...))
}

func failureKind(err error) condense.Failure {
	if call, ok := errors.AsType[*condense.CallError](err); ok {
		return call.Kind
	}
	return condense.FailureMalformed
}

// countCall counts a call to a summariser, whether or not its reply is used.
func (m *Metrics) countCall(tenant string, info proxy.ModelInfo, u session.Usage, err error, took time.Duration) {
	if err != nil {
		m.savings.callSeconds.WithLabelValues(tenant, "failed").Observe(took.Seconds())
		m.savings.callFailures.WithLabelValues(tenant, string(failureKind(err))).Inc()
		return
	}
	m.savings.callSeconds.WithLabelValues(tenant, "replied").Observe(took.Seconds())
	m.savings.callTokens.WithLabelValues(tenant, info.Name, "prompt").Add(float64(max(u.Input, 0)))
	m.savings.callTokens.WithLabelValues(tenant, info.Name, "cached").Add(float64(max(u.Cached, 0)))
	m.savings.callTokens.WithLabelValues(tenant, info.Name, "completion").Add(float64(max(u.Output, 0)))
}
