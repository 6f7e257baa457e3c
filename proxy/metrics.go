package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Metrics counts what the proxy does. All labels are bounded: tenants are configured, the rest is ours.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	errors   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	condense *prometheus.CounterVec
	own      *prometheus.CounterVec
	store    *prometheus.CounterVec
	away     prometheus.Gauge
	gone     prometheus.Counter
	panics   prometheus.Counter
	unknown  prometheus.Counter
	relief   *prometheus.CounterVec
	source   *prometheus.CounterVec
}

// NewMetrics makes a set of its own, so that servers in one process do not share counters.
func NewMetrics() *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry: r,
		requests: counter("requests_total", "Requests answered, by tenant and status class.", "tenant", "status"),
		errors:   counter("errors_total", "Requests that the proxy itself refused or failed, by error code.", "code"),
		tokens: counter("tokens_total",
			"Prompt tokens: sent by clients (in), forwarded after condensing (forwarded), and as upstream reported them (prompt, cached, completion).",
			"tenant", "stage"),
		condense: counter("condensations_total", "Condensations, by condenser, reason and outcome.",
			"tenant", "condenser", "reason", "outcome"),
		own:   counter("condenser_tokens_total", "Tokens used by the proxy's own model calls.", "tenant", "kind"),
		store: counter("store_losses_total", "Requests not recognised and writes lost because the store was away.", "op"),
		away: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "dewpoint", Name: "store_degraded", Help: "1 while the store can not be reached.",
		}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "dewpoint", Name: "client_gone_total", Help: "Clients that left before they were answered.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "dewpoint", Name: "panics_total", Help: "Panics caught; each is a defect.",
		}),
		source: counter("recognised_total", "Requests recognised, by what: key, prefix, trace or new.", "source"),
		relief: counter("overflows_relieved_total", "Requests that overflowed upstream's window, condensed and sent again.", "tenant"),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "dewpoint", Name: "unknown_model_requests_total",
			Help: "Requests for models that are neither configured nor built in: window and encoding are a guess.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "dewpoint", Name: "request_seconds", Help: "From a request's body to the end of its answer.",
			Buckets: []float64{.005, .05, .25, 1, 5, 15, 60, 300},
		}, []string{"tenant"}),
	}
	r.MustRegister(m.requests, m.errors, m.seconds, m.tokens, m.condense, m.own, m.store, m.away, m.gone, m.panics, m.unknown, m.relief, m.source)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "dewpoint", Name: name, Help: help}, labels)
}

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *Metrics) answered(tenant string, status int, took time.Duration) {
	m.requests.WithLabelValues(tenant, strconv.Itoa(status/100)+"xx").Inc()
	m.seconds.WithLabelValues(tenant).Observe(took.Seconds())
}

func (m *Metrics) refused(code string) { m.errors.WithLabelValues(code).Inc() }

func (m *Metrics) clientGone() { m.gone.Inc() }

func (m *Metrics) panicked() { m.panics.Inc() }

func (m *Metrics) forwarded(tenant string, before, after int) {
	m.tokens.WithLabelValues(tenant, "in").Add(float64(max(before, 0)))
	m.tokens.WithLabelValues(tenant, "forwarded").Add(float64(max(after, 0)))
}

func (m *Metrics) usage(tenant string, u session.Usage) {
	m.tokens.WithLabelValues(tenant, "prompt").Add(float64(max(u.Input, 0)))
	m.tokens.WithLabelValues(tenant, "cached").Add(float64(max(u.Cached, 0)))
	m.tokens.WithLabelValues(tenant, "completion").Add(float64(max(u.Output, 0)))
}

func (m *Metrics) condensed(tenant, condenser string, c session.Condensation, fallback error) {
	outcome := "condensed"
	if fallback != nil {
		outcome = "fallback"
	}
	m.condense.WithLabelValues(tenant, condenser, string(c.Reason), outcome).Inc()
	m.ownCall(tenant, c.Usage)
}

// ownCall meters a call of a summariser, whatever came of it.
func (m *Metrics) ownCall(tenant string, u session.Usage) {
	m.own.WithLabelValues(tenant, "prompt").Add(float64(max(u.Input, 0)))
	m.own.WithLabelValues(tenant, "completion").Add(float64(max(u.Output, 0)))
}

func (m *Metrics) recognised(source session.Source) { m.source.WithLabelValues(string(source)).Inc() }

func (m *Metrics) notCondensed(tenant, condenser string, reason session.Reason) {
	m.condense.WithLabelValues(tenant, condenser, string(reason), "failed").Inc()
}

func (m *Metrics) observed(tenant, condenser string, reason session.Reason) {
	m.condense.WithLabelValues(tenant, condenser, string(reason), "observed").Inc()
}

func (m *Metrics) relieved(tenant string) { m.relief.WithLabelValues(tenant).Inc() }

func (m *Metrics) unknownModel() { m.unknown.Inc() }

func (m *Metrics) degraded(away bool) {
	m.away.Set(0)
	if away {
		m.away.Set(1)
	}
}

func (m *Metrics) unrecognised() { m.store.WithLabelValues("resolve").Inc() }

func (m *Metrics) lost(op string) { m.store.WithLabelValues(op).Inc() }

func (m *Metrics) skipped() { m.store.WithLabelValues("append_queue_full").Inc() }
