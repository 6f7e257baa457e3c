package observe

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Observer makes metrics of what becomes of requests, ends their spans, and writes their lines into the log.
type Observer struct {
	metrics *Metrics
	lines   *lines // nil: requests are not logged
}

var (
	_ proxy.Observer = Observer{}
	_ proxy.Faults   = (*Metrics)(nil)
)

// Observer makes an observer that counts in m. With a log, it writes a line for each request.
func (m *Metrics) Observer(log *zap.Logger) Observer {
	o := Observer{metrics: m}
	if log != nil {
		o.lines = newLines(log, m.process.lines.WithLabelValues("sampled").Inc)
	}
	return o
}

func (o Observer) Begun() { o.metrics.traffic.inFlight.Inc() }

func (o Observer) Condensed(c proxy.Condensation) {
	o.metrics.history.condensed.WithLabelValues(c.Tenant, c.Condenser, string(c.Reason), string(c.Outcome)).Inc()
	o.metrics.history.redeemed.WithLabelValues(c.Tenant).Add(float64(c.Redeems))
	if c.Asked != "" {
		o.metrics.history.asked.WithLabelValues(c.Tenant, string(c.Asked)).Inc()
	}
}

func (o Observer) Ended(ctx context.Context, r *proxy.Record) {
	o.metrics.ended(r)
	endRequest(ctx, r)
	if o.lines != nil {
		o.lines.write(r)
	}
}

func (m *Metrics) Panicked() { m.process.panics.Inc() }

func (m *Metrics) Lost(op string) { m.store.losses.WithLabelValues(op).Inc() }

func (m *Metrics) BadSummary(tenant string, kind condense.Fault) {
	m.own.failures.WithLabelValues(tenant, string(kind)).Inc()
}

// ended counts a request.
func (m *Metrics) ended(r *proxy.Record) {
	m.traffic.inFlight.Dec()
	m.traffic.requests.WithLabelValues(r.Tenant, r.Dialect, r.Model, statusClass(r.Status), r.Code).Inc()
	if r.Code == proxy.CodeClientGone {
		m.traffic.gone.Inc()
	}
	if r.Limit != "" {
		m.traffic.limited.WithLabelValues(r.Tenant, r.Limit).Inc()
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
	m.timed(r)
	m.history.hidden.WithLabelValues(r.Tenant).Add(float64(r.Condensed.Hidden))
	if r.Condensed.Repeated > 0 {
		m.history.repeated.WithLabelValues(r.Tenant).Inc()
	}
	if r.Turn != nil {
		m.recognised(r.Tenant, r.Turn)
		m.active.saw(string(r.Turn.Session), r.Times.Ended)
		m.counted(r)
	}
}

// timed counts a request's times.
func (m *Metrics) timed(r *proxy.Record) {
	at, id := r.Times, r.Asked.Trace
	if r.Tenant != "" {
		observe(m.traffic.seconds.WithLabelValues(r.Tenant), at.Ended.Sub(at.Begun).Seconds(), id)
	}
	if !r.Call.Sent.IsZero() {
		observe(m.traffic.overhead.WithLabelValues(r.Tenant, "request"), at.Overhead.Seconds(), id)
	}
	if !r.Call.First.IsZero() {
		observe(m.traffic.firstByte.WithLabelValues(r.Tenant), r.Call.First.Sub(r.Call.Sent).Seconds(), id)
	}
	if at.Held > 0 {
		observe(m.traffic.overhead.WithLabelValues(r.Tenant, "answer"), at.Held.Seconds(), id)
	}
	if r.Turn == nil {
		return
	}
	for _, wait := range r.Turn.Waits {
		observe(m.history.seconds.WithLabelValues(r.Tenant), wait.Seconds(), id)
	}
}

func (m *Metrics) recognised(tenant string, t *proxy.TurnRecord) {
	m.history.recognised.WithLabelValues(tenant, string(t.Source)).Inc()
	if kind := t.Relation.Kind; kind.Begins() {
		m.history.threads.WithLabelValues(tenant, string(kind), string(t.Cause)).Inc()
	}
	if t.Begins {
		m.history.sessions.WithLabelValues(tenant).Inc()
	}
	m.history.relieved.WithLabelValues(tenant).Add(float64(t.Relieved))
}

// counted counts a request's tokens, and what was saved of them.
func (m *Metrics) counted(r *proxy.Record) {
	t, u := r.Turn, r.Call.Usage
	if t.After == (session.Size{}) || r.Call.Status != http.StatusOK {
		return // upstream did not answer
	}
	add := func(stage string, tokens int) {
		m.traffic.tokens.WithLabelValues(r.Tenant, r.Model, stage).Add(float64(max(tokens, 0)))
	}
	add("in", t.Before.Tokens)
	add("forwarded", t.After.Tokens)
	if u != nil {
		add("prompt", u.Input)
		add("cached", u.Cached)
		add("completion", u.Output)
		m.savings.upstreamUSD.WithLabelValues(r.Tenant, r.Model).Add(t.Charged)
	}
	m.supposed(r)
	signed(m.savings.tokens.WithLabelValues(r.Tenant, r.Model), m.savings.spentTokens.WithLabelValues(r.Tenant, r.Model, "request"),
		float64(t.Saved.Tokens))
	signed(m.savings.usd.WithLabelValues(r.Tenant, r.Model), m.savings.spentUSD.WithLabelValues(r.Tenant, r.Model, "cache"), t.Saved.USD())
}

// supposed counts what condensing would have saved of a request whose tenant only observes.
func (m *Metrics) supposed(r *proxy.Record) {
	spare := r.Turn.Spare
	if spare.Tokens <= 0 {
		return
	}
	m.savings.observedTokens.WithLabelValues(r.Tenant, r.Model).Add(float64(spare.Tokens))
	signed(m.savings.observedUSD.WithLabelValues(r.Tenant, r.Model, "saved"), m.savings.observedUSD.WithLabelValues(r.Tenant, r.Model, "cache"), spare.USD())
}

// signed adds to one of two counters: a counter cannot go down.
func signed(up, down prometheus.Counter, value float64) {
	if value < 0 {
		down.Add(-value)
		return
	}
	up.Add(value)
}

// observe adds to a histogram, with the trace as an example where there is one.
func observe(h prometheus.Observer, seconds float64, id string) {
	if e, ok := h.(prometheus.ExemplarObserver); ok && id != "" {
		e.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": id})
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
