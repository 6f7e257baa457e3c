package proxy

import (
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
	server   atomic.Pointer[Server] // whose state is read at each scrape, nil at first
	strange  *meters                // of requests that belong to no tenant
}

// NewMetrics makes a set of its own, so that servers in one process do not share counters.
func NewMetrics() *Metrics {
	m := &Metrics{families: families{registry: prometheus.NewRegistry(), labels: map[string][]string{}}}
	f := &m.families
	m.traffic = newTraffic(f)
	m.savings = newSavings(f)
	m.history = newHistoryFamilies(f)
	m.own = newOwn(f)
	m.store = newStoreFamilies(f)
	m.process = newProcess(f)
	m.gauges(f)
	f.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.strange = newMeters(m, "")
	return m
}

// gauges are those that are read from the server at each scrape.
func (m *Metrics) gauges(f *families) {
	f.function("bytes_in_flight", "Request bytes held.", func() float64 {
		if s := m.server.Load(); s != nil {
			return float64(s.reader.budget.used.Load())
		}
		return 0
	})
	f.function("bytes_in_flight_limit", "Request bytes that may be held: limits.bytes_in_flight.", func() float64 {
		if s := m.server.Load(); s != nil {
			return float64(s.reader.budget.limit)
		}
		return 0
	})
	f.collector("summariser_cooling", "1 while a tenant's summariser is left alone because it failed.", m.cooling, "tenant")
}

// cooling tells of the tenants in force.
func (m *Metrics) cooling(set func(value float64, labels ...string)) {
	s := m.server.Load()
	if s == nil {
		return
	}
	for _, t := range s.live.Load().tenants.tenants {
		value := 0.0
		if t.Cooldown != nil && t.Cooldown.Cooling(s.o.Now()) {
			value = 1
		}
		set(value, t.Name)
	}
}

// watch makes a server the one whose state is told.
func (m *Metrics) watch(s *Server) { m.server.Store(s) }

// Handler serves the metrics, in the OpenMetrics format to whoever asks for it: only that has exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.families.registry, promhttp.HandlerOpts{
		Registry: m.families.registry, EnableOpenMetrics: true,
	})
}

// Names gives the label names of every metric of our own, by the metric's name. Of a histogram it is the name without
// _bucket, _sum and _count.
func (m *Metrics) Names() map[string][]string {
	out := maps.Clone(m.families.labels)
	for name, labels := range out {
		out[name] = slices.Clone(labels)
	}
	return out
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

func (f *families) seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels,
	)
	f.add(name, h, labels)
	return h
}

// function is a gauge that is read when it is asked for.
func (f *families) function(name, help string, read func() float64) {
	g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read)
	f.add(name, g, nil)
}

// collector is a gauge whose series are found when they are asked for.
func (f *families) collector(name, help string, read func(set func(float64, ...string)), labels ...string) {
	d := prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	f.add(name, collector{d, read}, labels)
}

type collector struct {
	desc *prometheus.Desc
	read func(set func(float64, ...string))
}

var _ prometheus.Collector = collector{}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.read(func(value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, value, labels...)
	})
}
