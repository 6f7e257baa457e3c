// Package observe makes metrics, spans and lines of the log of what the proxy tells it of requests. It knows no server and
// no request under way: it gets values, and closures for what is read at each scrape.
package observe

import (
	"iter"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dewpoint-proxy/dewpoint/internal/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Metrics counts what the proxy does. It may be used concurrently. All labels are bounded: tenants and models are
// configured or built in, the rest is ours. docs/metrics.md says what each metric means.
type Metrics struct {
	families families
	traffic  traffic
	savings  savings
	history  history
	own      own
	store    storeFamilies
	process  process
	active   *activeSessions
}

// NewMetrics makes a set of its own, so that servers in one process do not share counters.
func NewMetrics() *Metrics {
	m := &Metrics{families: families{registry: prometheus.NewRegistry(), labels: map[string][]string{}}}
	f := &m.families
	m.traffic, m.savings, m.history = newTraffic(f), newSavings(f), newHistory(f)
	m.own, m.store, m.process = newOwn(f), newStoreFamilies(f), newProcess(f)
	m.active = &activeSessions{seen: map[string]time.Time{}}
	f.gaugeFunc("sessions_active", "Sessions with a request to this replica within the last 15 minutes, 100,000 at most.",
		func() float64 { return float64(m.active.count(time.Now())) })
	f.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves the metrics, in the OpenMetrics format to clients that ask for it: only that has exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.families.registry, promhttp.HandlerOpts{
		Registry: m.families.registry, EnableOpenMetrics: true,
	})
}

// Gauges are read at each scrape.
type Gauges struct {
	InFlight, Limit func() int64            // request bytes held, and that may be held
	Degraded        func() bool             // the store
	Cooling         iter.Seq2[string, bool] // by tenant: its summariser is left alone
	Held            iter.Seq2[string, proxy.Held]
	Holdouts        iter.Seq2[string, holdout.Comparison] // by tenant that has one; nil: none
	Pending         iter.Seq2[string, int]                // condensations to be told of, by tenant with a memory
	Embedded        func() (StoreSize, bool)              // false: not known; nil: the store is another one
}

// StoreSize is how large an embedded store is, in bytes.
type StoreSize struct {
	Records int64
	Limit   int64 // of them; 0: none
	File    int64
}

// Gauges registers them. It is called once.
func (m *Metrics) Gauges(g Gauges) {
	f := &m.families
	f.gaugeFunc("bytes_in_flight", "Request bytes held.", func() float64 { return float64(g.InFlight()) })
	f.gaugeFunc("bytes_in_flight_limit", "Request bytes that may be held: limits.bytes_in_flight.",
		func() float64 { return float64(g.Limit()) })
	f.gaugeFunc("store_degraded", "1 while the store cannot be reached, or takes no writes.",
		func() float64 { return number(g.Degraded()) })
	byTenant(f, "bytes_held", "Request bytes held for a tenant's clients.", g.Held,
		func(h proxy.Held) float64 { return float64(h.Bytes) })
	byTenant(f, "bytes_held_most", "Request bytes held for the one of a tenant's clients that holds the most.", g.Held,
		func(h proxy.Held) float64 { return float64(h.Most) })
	f.holdouts(g.Holdouts)
	f.embedded("store_bytes", "Bytes that the records of the embedded store take.", g.Embedded, func(s StoreSize) int64 { return s.Records })
	f.embedded("store_bytes_limit", "Bytes that they may take: store.max_size. Not there if that is 0.", g.Embedded,
		func(s StoreSize) int64 { return s.Limit })
	f.embedded("store_file_bytes", "Bytes of the embedded store's file.", g.Embedded, func(s StoreSize) int64 { return s.File })
	byTenant(f, "findings_pending", "Condensations whose findings wait to be delivered. All replicas share them.", g.Pending,
		func(n int) float64 { return float64(n) })
	byTenant(f, "summariser_cooling", "1 while a tenant's summariser is left alone because it failed.", g.Cooling, number)
}

// byTenant registers a gauge whose values are read at each scrape.
func byTenant[V any](f *families, name, help string, read iter.Seq2[string, V], value func(V) float64) {
	labels := []string{"tenant"}
	desc := prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	f.add(name, prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		if read == nil {
			return
		}
		for tenant, v := range read {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value(v), tenant)
		}
	}), labels)
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Tenant begins the series of a tenant at 0: a rate does not see what a series begins with.
func (m *Metrics) Tenant(tenant string) {
	m.traffic.seconds.WithLabelValues(tenant)
	m.traffic.firstByte.WithLabelValues(tenant)
	m.traffic.overhead.WithLabelValues(tenant, "request")
	m.traffic.overhead.WithLabelValues(tenant, "answer")
	m.history.seconds.WithLabelValues(tenant)
	m.history.sessions.WithLabelValues(tenant)
	for _, cause := range [...]session.Cause{"", session.CauseUnknown, session.CauseUnread} {
		m.history.threads.WithLabelValues(tenant, string(session.RelationNew), string(cause))
	}
	for _, cause := range [...]session.Cause{
		session.CauseUser, session.CauseAnswer, session.CauseResult, session.CauseLeftOut, session.CauseInserted, session.CauseSide, session.CauseUnread,
	} {
		m.history.threads.WithLabelValues(tenant, string(session.RelationFork), string(cause))
	}
	for _, cause := range [...]session.Cause{"", session.CauseUser, session.CauseSide, session.CauseUnread} {
		m.history.threads.WithLabelValues(tenant, string(session.RelationLink), string(cause))
	}
	m.history.relieved.WithLabelValues(tenant)
	for _, outcome := range [...]proxy.Compaction{proxy.CompactionMade, proxy.CompactionFailed, proxy.CompactionRefused} {
		m.history.compacted.WithLabelValues(tenant, string(outcome))
	}
	m.history.hidden.WithLabelValues(tenant)
	m.history.repeated.WithLabelValues(tenant)
	for _, outcome := range findings.Outcomes() {
		m.history.findings.WithLabelValues(tenant, string(outcome))
	}
	for _, source := range [...]session.Source{session.SourceKey, session.SourcePrefix, session.SourceTrace, session.SourceNew} {
		m.history.recognised.WithLabelValues(tenant, string(source))
	}
}

// Findings counts what becomes of what a tenant's memory is to be told.
func (m *Metrics) Findings(tenant string, o findings.Outcome) {
	m.history.findings.WithLabelValues(tenant, string(o)).Inc()
}

// Names gives the label names of every metric of our own, by the metric's name. Of a histogram it is the name without
// _bucket, _sum and _count.
func Names() map[string][]string {
	m := NewMetrics()
	m.Gauges(Gauges{})
	return m.families.labels
}

// families makes metrics, and remembers what they are called.
type families struct {
	registry *prometheus.Registry
	labels   map[string][]string
}

const namespace = "dewpoint"

func (f *families) add(name string, c prometheus.Collector, labels []string) {
	f.registry.MustRegister(c)
	f.labels[namespace+"_"+name] = labels
}

func (f *families) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	f.add(name, c, labels)
	return c
}

func (f *families) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	f.add(name, g, labels)
	return g
}

func (f *families) gaugeFunc(name, help string, read func() float64) {
	f.add(name, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read), nil)
}

func (f *families) seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels,
	)
	f.add(name, h, labels)
	return h
}
