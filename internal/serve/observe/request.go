package observe

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Observer counts requests when they end, ends their spans and logs one line for each. Requests that failed or were condensed are
// always logged. Plain requests, and those without a tenant, are sampled.
type Observer struct {
	metrics *Metrics
	log     *zap.Logger // nil: requests are not logged
	sampled *zap.Logger
}

var (
	_ proxy.Observer = Observer{}
	_ proxy.Faults   = (*Metrics)(nil)
)

// Observer returns an observer that updates m and, if log is not nil, logs each request.
func (m *Metrics) Observer(log *zap.Logger) Observer {
	o := Observer{metrics: m, log: log}
	if log != nil {
		o.sampled = sample(log, m.process.lines.WithLabelValues("sampled").Inc)
	}
	return o
}

func (o Observer) Begun() { o.metrics.traffic.inFlight.Inc() }

// Called implements proxy.Observer. Calls of the proxy's own are counted where they are made.
func (o Observer) Called(proxy.OwnCall) {}

func (o Observer) Condensed(c proxy.Condensation) {
	o.metrics.history.condensed.WithLabelValues(c.Tenant, c.Condenser, string(c.Reason), string(c.Outcome)).Inc()
	o.metrics.history.redeemed.WithLabelValues(c.Tenant).Add(float64(c.Redeems))
	if c.Asked != "" {
		o.metrics.history.asked.WithLabelValues(c.Tenant, string(c.Asked)).Inc()
	}
	if g := c.Grounding; g.Lines > 0 {
		o.metrics.history.recordLines.WithLabelValues(c.Tenant, "grounded").Add(float64(g.Grounded))
		o.metrics.history.recordLines.WithLabelValues(c.Tenant, "struck").Add(float64(g.Lines - g.Grounded))
	}
}

func (o Observer) Ended(ctx context.Context, r *proxy.Record) {
	o.metrics.countRequest(r)
	endRequest(ctx, r)
	if w := o.metrics.watcher; w != nil {
		w.Ended(r)
	}
	if o.log != nil {
		o.write(r)
	}
}

func (m *Metrics) Panicked() { m.process.panics.Inc() }

func (m *Metrics) Lost(op string) { m.process.storeLosses.WithLabelValues(op).Inc() }

func (m *Metrics) BadSummary(tenant string, kind condense.Fault) {
	m.savings.callFailures.WithLabelValues(tenant, string(kind)).Inc()
}

func (m *Metrics) countRequest(r *proxy.Record) {
	m.traffic.inFlight.Dec()
	m.traffic.requests.WithLabelValues(r.Tenant, r.Dialect, r.Model, statusClass(r.Status), r.Code).Inc()
	if r.Code == proxy.CodeClientGone {
		m.traffic.gone.Inc()
	}
	if why := r.Condensed.Whole; why != "" {
		m.history.whole.WithLabelValues(r.Tenant, string(why)).Inc()
	}
	if c := r.Condensed.Compaction; c != "" {
		m.history.compacted.WithLabelValues(r.Tenant, string(c)).Inc()
	}
	if r.Unread != "" {
		m.traffic.unread.WithLabelValues(r.Tenant, r.Unread).Inc()
	}
	m.observeTimes(r)
	addCount(m.history.hidden, r.Tenant, r.Condensed.Hidden)
	addCount(m.history.notKept, r.Tenant, r.Condensed.NotKept)
	m.countBill(r)
	if r.Turn != nil {
		m.countTurn(r.Tenant, r.Turn)
		m.active.Add(string(r.Turn.Session), r.Times.Ended)
		m.countTokens(r)
	}
}

func (m *Metrics) observeTimes(r *proxy.Record) {
	at, trace := r.Times, r.Asked.Trace
	if r.Tenant != "" {
		observe(m.traffic.seconds.WithLabelValues(r.Tenant), at.Ended.Sub(at.Begun).Seconds(), trace)
	}
	if !r.Call.Sent.IsZero() {
		observe(m.traffic.overhead.WithLabelValues(r.Tenant, "request"), at.Overhead.Seconds(), trace)
	}
	if !r.Call.First.IsZero() {
		observe(m.traffic.firstByte.WithLabelValues(r.Tenant), r.Call.First.Sub(r.Call.Sent).Seconds(), trace)
	}
	if at.LogWait > 0 {
		observe(m.traffic.overhead.WithLabelValues(r.Tenant, "answer"), at.LogWait.Seconds(), trace)
	}
	if r.Turn == nil {
		return
	}
	for _, wait := range r.Turn.Waits {
		observe(m.history.seconds.WithLabelValues(r.Tenant), wait.Seconds(), trace)
	}
}

func (m *Metrics) countTurn(tenant string, t *proxy.TurnRecord) {
	m.history.recognised.WithLabelValues(tenant, string(t.Source)).Inc()
	if kind := t.Relation.Kind; kind.Begins() {
		m.history.threads.WithLabelValues(tenant, string(kind), string(t.Cause)).Inc()
	}
	if t.Begins {
		m.history.sessions.WithLabelValues(tenant).Inc()
	}
	addCount(m.history.relieved, tenant, t.Relieved)
}

// addCount adds to a counter of a tenant, whose series begins when there is something to count.
func addCount(c *prometheus.CounterVec, tenant string, n int) {
	if n > 0 {
		c.WithLabelValues(tenant).Add(float64(n))
	}
}

// Missed counts a request whose prompt upstream did not read from its cache as far as it could.
func (m *Metrics) Missed(tenant string, why account.Miss) {
	m.traffic.misses.WithLabelValues(tenant, string(why)).Inc()
}

// countBill counts what upstream charges for a request, or for the one that a gateway reports, as the journal's totals do.
func (m *Metrics) countBill(r *proxy.Record) {
	b := r.Bill
	if r.Reported != nil {
		b = &r.Reported.Bill
	}
	if b == nil {
		return
	}
	add := func(stage string, tokens int) {
		m.traffic.tokens.WithLabelValues(r.Tenant, r.Model, stage).Add(float64(max(tokens, 0)))
	}
	add("prompt", b.Input)
	add("cached", b.Cached)
	add("completion", b.Output)
	if b.Priced && !r.Asked.Plan {
		m.savings.upstreamUSD.WithLabelValues(r.Tenant, r.Model).Add(float64(b.Pico) / 1e12)
	}
	if !b.Reported {
		m.traffic.reckoned.WithLabelValues(r.Tenant, r.Model).Inc()
	}
}

// countTokens counts a request's tokens and money, and what was saved of them.
func (m *Metrics) countTokens(r *proxy.Record) {
	t := r.Turn
	if t.After == (session.Size{}) || !r.Answered() {
		return // upstream did not answer
	}
	add := func(stage string, tokens int) {
		m.traffic.tokens.WithLabelValues(r.Tenant, r.Model, stage).Add(float64(max(tokens, 0)))
	}
	add("in", t.Before.Tokens)
	add("forwarded", t.After.Tokens)
	s := &m.savings
	if t.Spare.Tokens > 0 { // tokens that condensing would have saved, for a tenant that only observes
		s.observedTokens.WithLabelValues(r.Tenant, r.Model).Add(float64(t.Spare.Tokens))
		addSigned(s.observedUSD.WithLabelValues(r.Tenant, r.Model, "saved"), s.observedUSD.WithLabelValues(r.Tenant, r.Model, "cache"),
			t.Spare.USD())
	}
	addSigned(s.tokens.WithLabelValues(r.Tenant, r.Model), s.spentTokens.WithLabelValues(r.Tenant, r.Model, "request"),
		float64(t.Saved.Tokens))
	addSigned(s.usd.WithLabelValues(r.Tenant, r.Model), s.spentUSD.WithLabelValues(r.Tenant, r.Model, "cache"),
		t.Saved.USD())
}

// addSigned adds a positive value to up and the amount of a negative one to down, since a counter cannot decrease.
func addSigned(up, down prometheus.Counter, value float64) {
	if value < 0 {
		down.Add(-value)
		return
	}
	up.Add(value)
}

// observe adds to a histogram, with the trace ID as exemplar unless it is empty.
func observe(h prometheus.Observer, seconds float64, traceID string) {
	if e, ok := h.(prometheus.ExemplarObserver); ok && traceID != "" {
		e.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": traceID})
		return
	}
	h.Observe(seconds)
}

func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[status/100-1]
}
