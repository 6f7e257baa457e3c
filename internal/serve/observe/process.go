package observe

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// process holds metrics of the process, its configuration and its store.
type process struct {
	build, switched                  *prometheus.GaugeVec
	reloaded, since, config, pending prometheus.Gauge
	panics, exports                  prometheus.Counter
	lines, storeErrors, storeLosses  *prometheus.CounterVec
	storeSeconds                     *prometheus.HistogramVec
}

func newProcess(f *families) process {
	return process{
		build:    f.gauge("build_info", "Always 1. The labels describe the build.", "version", "revision", "go_version"),
		panics:   f.counter("panics_total", "Recovered panics. Each is a bug.").WithLabelValues(),
		reloaded: f.gauge("config_reload_success", "1 if the configuration loaded last is in force.").WithLabelValues(),
		since: f.gauge("config_reload_success_timestamp_seconds",
			"When the configuration in force was loaded, in seconds since 1970.").WithLabelValues(),
		config: f.gauge("config_hash", "Hash of the configuration in force, without secrets. Replicas with the same configuration have the same hash.").WithLabelValues(),
		pending: f.gauge("config_restart_pending",
			"Number of sections of the configuration loaded last that take effect only at the next start.").WithLabelValues(),
		switched: f.gauge("condensing_switched",
			"1 for each tenant whose condensing an operator has switched, by mode: on, observe or off.", "tenant", "mode"),
		lines: f.counter("log_lines_dropped_total",
			"Dropped log lines: lines of plain requests beyond the limit (sampled), and lines that could not be written in time (full).", "cause"),
		exports:      f.counter("trace_export_failures_total", "Batches of spans that the collector did not accept.").WithLabelValues(),
		storeSeconds: f.seconds("store_seconds", "Duration of store calls.", storeBuckets, "op"),
		storeErrors: f.counter("store_errors_total",
			"Store calls that failed. Regular results (not found, stale, locked) do not count.", "op"),
		storeLosses: f.counter("store_losses_total", "Requests not recognised and writes lost because the store was unavailable.", "op"),
	}
}

// Build sets the labels of build_info.
func (m *Metrics) Build(version, revision string) {
	m.process.build.Reset()
	m.process.build.WithLabelValues(version, revision, runtime.Version()).Set(1)
}

// NotReloaded records that a configuration could not be loaded or applied.
func (m *Metrics) NotReloaded() { m.process.reloaded.Set(0) }

// Reloaded records that a configuration with the given hash took effect.
func (m *Metrics) Reloaded(hash uint32, now time.Time) {
	m.process.reloaded.Set(1)
	m.process.config.Set(float64(hash))
	m.process.since.Set(float64(now.UnixMilli()) / 1000)
}

// RestartPending sets how many sections of the loaded configuration take effect only at the next start.
func (m *Metrics) RestartPending(n int) { m.process.pending.Set(float64(n)) }

// Switched sets the tenants whose condensing is switched, with the mode of each.
func (m *Metrics) Switched(tenants map[string]string) {
	m.process.switched.Reset()
	for tenant, mode := range tenants {
		m.process.switched.WithLabelValues(tenant, mode).Set(1)
	}
}

// LinesLost counts log lines that could not be written in time.
func (m *Metrics) LinesLost(n int) { m.process.lines.WithLabelValues("full").Add(float64(n)) }

// ExportFailed counts a batch of spans that the collector did not accept.
func (m *Metrics) ExportFailed() { m.process.exports.Inc() }
