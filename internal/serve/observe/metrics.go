// Package observe turns the proxy's records of requests into metrics, spans and log lines. It knows neither the server nor
// requests in progress. It receives values, and closures for what is read at each scrape.
package observe

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Metrics holds the proxy's metrics. It is safe for concurrent use. All labels are bounded: tenants and models are
// configured or built in, and other values are constants. docs/metrics.md describes each metric.
type Metrics struct {
	families families
	traffic  traffic
	savings  savings
	history  history
	process  process
	active   lru.Cache[string, time.Time] // the time of each session's latest request
	watcher  Watcher                      // may be nil
}

const (
	activeTime = 15 * time.Minute // how long a session counts as active after its latest request
	maxActive  = 100_000          // sessions that are counted
)

// NewMetrics returns metrics with their own registry, so that servers in one process do not share counters.
func NewMetrics() *Metrics {
	m := &Metrics{families: families{registry: prometheus.NewRegistry(), labels: map[string][]string{}}}
	f := &m.families
	m.traffic, m.savings, m.history, m.process = newTraffic(f), newSavings(f), newHistory(f), newProcess(f)
	m.active = lru.New[string, time.Time](maxActive)
	f.gaugeFunc("sessions_active", "Sessions with a request to this replica within the last 15 minutes, at most 100,000.",
		func() float64 { return float64(m.activeSessions(time.Now())) })
	f.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watcher receives what is counted: requests that have ended, and the proxy's own model calls. Its methods are called concurrently and must
// not block.
type Watcher interface {
	Ended(r *proxy.Record)
	Called(c limit.Call)
}

// Watch passes everything that is counted from now on to a watcher. It must be called before anything is counted.
func (m *Metrics) Watch(w Watcher) { m.watcher = w }

// activeSessions returns how many sessions are active at a time.
func (m *Metrics) activeSessions(at time.Time) (n int) {
	for _, last := range m.active.Values() {
		if at.Sub(last) <= activeTime {
			n++
		}
	}
	return n
}

// Handler serves the metrics. Clients that ask for it get the OpenMetrics format, the only one with exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.families.registry, promhttp.HandlerOpts{
		Registry: m.families.registry, EnableOpenMetrics: true,
	})
}

// Gauges are closures that are read at each scrape. Iterators yield tenants; a nil iterator yields none.
type Gauges struct {
	InFlight, Limit func() int64            // bytes of requests in memory, and their limit
	Degraded        func() bool             // whether the store is degraded
	Cooling         iter.Seq2[string, bool] // whether a tenant's summariser is cooling down
	Held            iter.Seq2[string, proxy.HeldBytes]
	Holdouts        iter.Seq2[string, holdout.Comparison]
	Budgets         iter.Seq2[string, engine.Spending]
	Pending         iter.Seq2[string, int]    // condensations whose findings wait to be delivered
	Refused         iter.Seq2[string, string] // what tenants serve whose files have problems
	Embedded        func() (StoreSize, bool)  // false: the size is not known; nil: the store is not embedded
}

// StoreSize is the size of an embedded store, in bytes.
type StoreSize struct {
	Records int64
	Limit   int64 // of Records; 0: no limit
	File    int64
}

// Gauges registers gauges. It must be called only once.
func (m *Metrics) Gauges(g Gauges) {
	f := &m.families
	f.gaugeFunc("bytes_in_flight", "Request bytes held.", func() float64 { return float64(g.InFlight()) })
	f.gaugeFunc("bytes_in_flight_limit", "Request bytes that may be held: limits.bytes_in_flight.",
		func() float64 { return float64(g.Limit()) })
	f.gaugeFunc("store_degraded", "1 while the store cannot be reached or accepts no writes.",
		func() float64 { return boolValue(g.Degraded()) })
	byTenant(f, "bytes_held", "Request bytes held for a tenant's clients.", g.Held,
		func(h proxy.HeldBytes) float64 { return float64(h.Bytes) })
	byTenant(f, "bytes_held_most", "Request bytes held for the tenant's client that holds the most.", g.Held,
		func(h proxy.HeldBytes) float64 { return float64(h.Most) })
	f.holdouts(g.Holdouts)
	f.budgets(g.Budgets)
	f.storeSize("store_bytes", "Bytes of the embedded store's records.", g.Embedded, func(s StoreSize) int64 { return s.Records })
	f.storeSize("store_bytes_limit", "Bytes that the embedded store's records may take: store.max_size. Missing if that is 0.", g.Embedded,
		func(s StoreSize) int64 { return s.Limit })
	f.storeSize("store_file_bytes", "Bytes of the embedded store's file.", g.Embedded, func(s StoreSize) int64 { return s.File })
	byTenant(f, "findings_pending", "Condensations whose findings wait to be delivered. All replicas share them.", g.Pending,
		func(n int) float64 { return float64(n) })
	f.gaugeSeries("tenant_refused",
		"1 for each tenant whose file has errors, and what its clients get meanwhile: last_good, its last good version, or nothing.",
		[]string{"tenant", "serves"}, func(emit func(v float64, labels ...string)) {
			if g.Refused == nil {
				return
			}
			for tenant, serves := range g.Refused {
				emit(1, tenant, serves)
			}
		})
	byTenant(f, "summariser_cooling", "1 while a tenant's summariser is not called because it failed.", g.Cooling, boolValue)
}

// byTenant registers a gauge with a series for each tenant that read yields.
func byTenant[V any](f *families, name, help string, read iter.Seq2[string, V], value func(V) float64) {
	f.gaugeSeries(name, help, []string{"tenant"}, func(emit func(v float64, labels ...string)) {
		if read == nil {
			return
		}
		for tenant, v := range read {
			emit(value(v), tenant)
		}
	})
}

// storeSize registers a gauge of the embedded store's size. It has no series if the value is 0 or not known.
func (f *families) storeSize(name, help string, read func() (StoreSize, bool), value func(StoreSize) int64) {
	f.gaugeSeries(name, help, nil, func(emit func(v float64, labels ...string)) {
		if read == nil {
			return
		}
		if size, known := read(); known && value(size) > 0 {
			emit(float64(value(size)))
		}
	})
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// atZero creates the series of a counter with these labels, for each value of its last label.
func atZero[L ~string](c *prometheus.CounterVec, labels []string, last ...L) {
	for _, value := range last {
		c.WithLabelValues(append(labels, string(value))...)
	}
}

// StoreCalls returns a watch that measures the calls of a store. It creates the series of all operations and losses at 0,
// because increase() sees a first event only after a 0.
func (m *Metrics) StoreCalls() session.Watch {
	for _, op := range [...]string{
		"secret", "find", "thread", "append", "condense", "prepare", "prepared", "summary", "events", "trace", "mark", "answers", "enter", "experiment",
		"save", "saved", "session", "lock", "keep lock", "reserve", "settle", "enqueue", "read outbox", "dequeue", "list sessions",
		"forget session", "request a condensation of", "compact", "set", "settings", "write journal", "read journal of",
		"find in journal", "read totals", "ping", "close session store",
	} {
		m.process.storeSeconds.WithLabelValues(op)
		m.process.storeErrors.WithLabelValues(op)
	}
	atZero(m.process.storeLosses, nil, "resolve", "append", "append_queue_full", "mark answer", "save", "save_queue_full",
		"compare", "compare_queue_full", "journal", "journal_queue_full", "budget", "shared_limit", "summary_unreadable")
	return func(op string, begun time.Time, err error) {
		m.process.storeSeconds.WithLabelValues(op).Observe(time.Since(begun).Seconds())
		if storeFailed(err) {
			m.process.storeErrors.WithLabelValues(op).Inc()
		}
	}
}

// storeFailed reports whether err is a failure of the store: neither a regular result nor a caller's cancellation.
func storeFailed(err error) bool {
	regular := [...]error{session.ErrNotFound, session.ErrStale, session.ErrLocked, context.Canceled}
	return err != nil && !slices.ContainsFunc(regular[:], func(e error) bool { return errors.Is(err, e) })
}

// Findings counts the outcome of a condensation's findings for a tenant's memory.
func (m *Metrics) Findings(tenant string, o findings.Outcome) {
	m.history.findings.WithLabelValues(tenant, string(o)).Inc()
}

// Names maps the name of each Dewpoint metric to its label names. Histograms are listed without _bucket, _sum and _count.
func Names() map[string][]string {
	m := NewMetrics()
	m.Gauges(Gauges{})
	return m.families.labels
}

// families creates and registers metrics, and keeps their label names.
type families struct {
	registry *prometheus.Registry
	labels   map[string][]string // by metric
}

const namespace = "dewpoint"

// add registers a metric, and returns it.
func add[C prometheus.Collector](f *families, name string, c C, labels []string) C {
	f.registry.MustRegister(c)
	f.labels[namespace+"_"+name] = labels
	return c
}

func (f *families) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return add(f, name, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels), labels)
}

func (f *families) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(f, name, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels), labels)
}

func (f *families) gaugeFunc(name, help string, read func() float64) {
	add(f, name, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read), nil)
}

// gaugeSeries registers a gauge whose series are computed at each scrape: read calls emit for each of them.
func (f *families) gaugeSeries(name, help string, labels []string, read func(emit func(v float64, labels ...string))) {
	desc := prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	add(f, name, prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		read(func(v float64, values ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, values...)
		})
	}), labels)
}

func (f *families) seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
	return add(f, name, prometheus.NewHistogramVec(o, labels), labels)
}
