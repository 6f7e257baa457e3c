package observe

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// process is the state of the process.
type process struct {
	build    *prometheus.GaugeVec
	panics   prometheus.Counter
	reloaded prometheus.Gauge
	since    prometheus.Gauge
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
		lines: f.counter("log_lines_dropped_total",
			"Log lines left out: of plain requests beyond the limit (sampled), and because they were not taken in time (full).", "cause"),
		exports: f.counter("trace_export_failures_total", "Batches of spans that the collector did not take.").WithLabelValues(),
	}
}

// Build says what runs: a version, and the rest from the binary itself.
func (m *Metrics) Build(version string) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	m.process.build.Reset()
	m.process.build.WithLabelValues(version, revision, runtime.Version()).Set(1)
}

// Reloaded says whether a configuration was put in force.
func (m *Metrics) Reloaded(ok bool, now time.Time) {
	if !ok {
		m.process.reloaded.Set(0)
		return
	}
	m.process.reloaded.Set(1)
	m.process.since.Set(float64(now.UnixMilli()) / 1000)
}

// LinesLost counts log lines that were not written in time.
func (m *Metrics) LinesLost(n int) { m.process.lines.WithLabelValues("full").Add(float64(n)) }

// ExportFailed counts spans that the collector did not take.
func (m *Metrics) ExportFailed() { m.process.exports.Inc() }
