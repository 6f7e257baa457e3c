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
	NoModel bool // a program or a service answers, which takes no tokens
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
	kind := "keep_warm"
	if !s.Warming {
		kind = "summariser"
		s.Metrics.ownCall(s.Tenant, info, reply.Usage, err, time.Since(begun))
	}
	u := model.Usage{}
	if !s.NoModel {
		u = used(r, reply, err)
	}
	c := limit.Call{
		Model: r.Model, Input: u.Input, Cached: u.Cached, Written: u.Written, Output: u.Output,
		USD: info.Price.Call(u), Known: s.NoModel || info.Price.Known(), Failed: err != nil,
	}
	if !c.Failed {
		s.Metrics.spent(s.Tenant, info, &c, kind)
	}
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

// used is what a call took. One that failed took its prompt, where the server may have read it all and still not answered; where it
// refused, or was not reached, nothing. What a reply does not report is guessed.
func used(r condense.Request, reply condense.Reply, err error) model.Usage {
	guess := r.Size() / 4
	if u := reply.Usage; err == nil && (u.Input > 0 || u.Output > 0) {
		return model.Usage{
			Input: max(u.Input, 0), Cached: max(u.Cached, 0), Output: max(u.Output, 0), Written: max(u.Written, 0), WrittenLong: max(u.WrittenLong, 0),
		}
	}
	if err == nil {
		return model.Usage{Input: guess, Output: len(reply.Text) / 4}
	}
	switch failureOf(err) {
	case condense.FailureTimeout, condense.FailureDeadline, condense.FailureCanceled, condense.FailureMalformed:
		return model.Usage{Input: guess}
	}
	return model.Usage{}
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
func (m *Metrics) ownCall(tenant string, info proxy.ModelInfo, u session.Usage, err error, took time.Duration) {
	if err != nil {
		m.own.seconds.WithLabelValues(tenant, "failed").Observe(took.Seconds())
		m.own.failures.WithLabelValues(tenant, string(failureOf(err))).Inc()
		return
	}
	m.own.seconds.WithLabelValues(tenant, "replied").Observe(took.Seconds())
	m.own.tokens.WithLabelValues(tenant, info.Name, "prompt").Add(float64(max(u.Input, 0)))
	m.own.tokens.WithLabelValues(tenant, info.Name, "cached").Add(float64(max(u.Cached, 0)))
	m.own.tokens.WithLabelValues(tenant, info.Name, "completion").Add(float64(max(u.Output, 0)))
}

// spent adds a call of ours to what condensing costs.
func (m *Metrics) spent(tenant string, info proxy.ModelInfo, c *limit.Call, kind string) {
	m.savings.spentTokens.WithLabelValues(tenant, info.Name, kind).Add(float64(c.Input + c.Output))
	m.savings.spentUSD.WithLabelValues(tenant, info.Name, kind).Add(max(c.USD, 0))
}

// Warmed counts a touch that keeps a prompt in its provider's cache.
func (m *Metrics) Warmed(tenant string, outcome engine.WarmOutcome) {
	m.own.warmed.WithLabelValues(tenant, string(outcome)).Inc()
}
