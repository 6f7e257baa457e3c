package observe

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// process is the state of the process.
type process struct {
	build    *prometheus.GaugeVec
	panics   prometheus.Counter
	reloaded prometheus.Gauge
	since    prometheus.Gauge
	config   prometheus.Gauge
	pending  prometheus.Gauge
	switched *prometheus.GaugeVec
	lines    *prometheus.CounterVec
	exports  prometheus.Counter
}

func newProcess(f *families) process {
	return process{
		build:    f.gauge("build_info", "Always 1; the labels say what runs.", "version", "revision", "go_version"),
		panics:   f.counter("panics_total", "Panics caught; each is a defect.").WithLabelValues(),
		reloaded: f.gauge("config_reload_success", "1 if the last configuration that was loaded is in force.").WithLabelValues(),
		since: f.gauge("config_reload_success_timestamp_seconds",
			"When the configuration in force was loaded, in seconds since 1970.").WithLabelValues(),
		config:  f.gauge("config_hash", "A hash of the configuration in force without its secrets: replicas that agree have the same.").WithLabelValues(),
		pending: f.gauge("config_restart_pending", "How many sections of the configuration that was loaded take effect only at the next start.").WithLabelValues(),
		switched: f.gauge("condensing_switched",
			"1 for each tenant whose condensing an operator has switched, and to what: on, observe or off.", "tenant", "mode"),
		lines: f.counter("log_lines_dropped_total",
			"Log lines left out: of plain requests beyond the limit (sampled), and because they were not taken in time (full).", "cause"),
		exports: f.counter("trace_export_failures_total", "Batches of spans that the collector did not take.").WithLabelValues(),
	}
}

// Build says what runs.
func (m *Metrics) Build(version, revision string) {
	m.process.build.Reset()
	m.process.build.WithLabelValues(version, revision, runtime.Version()).Set(1)
}

// NotReloaded says that a configuration could not be put in force.
func (m *Metrics) NotReloaded() { m.process.reloaded.Set(0) }

// Reloaded says that a configuration was put in force, and gives a hash of it.
func (m *Metrics) Reloaded(hash uint32, now time.Time) {
	m.process.reloaded.Set(1)
	m.process.config.Set(float64(hash))
	m.process.since.Set(float64(now.UnixMilli()) / 1000)
}

// RestartPending says how many sections of the configuration that was loaded wait for the next start.
func (m *Metrics) RestartPending(n int) { m.process.pending.Set(float64(n)) }

// Switched says which tenants' condensing is switched, by name, and to what.
func (m *Metrics) Switched(tenants map[string]string) {
	m.process.switched.Reset()
	for tenant, mode := range tenants {
		m.process.switched.WithLabelValues(tenant, mode).Set(1)
	}
}

// LinesLost counts log lines that were not written in time.
func (m *Metrics) LinesLost(n int) { m.process.lines.WithLabelValues("full").Add(float64(n)) }

// ExportFailed counts spans that the collector did not take.
func (m *Metrics) ExportFailed() { m.process.exports.Inc() }
