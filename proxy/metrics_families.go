package proxy

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Buckets of our own time, of answers, and of calls of a store, in seconds.
var (
	overheadBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	answerBuckets   = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320}
	storeBuckets    = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 1}
)

// traffic is what goes through.
type traffic struct {
	inFlight  prometheus.Gauge
	requests  *prometheus.CounterVec
	gone      prometheus.Counter
	seconds   *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	overhead  *prometheus.HistogramVec
	tokens    *prometheus.CounterVec
	limited   *prometheus.CounterVec
}

func newTraffic(f *families) traffic {
	return traffic{
		inFlight: f.gauge("requests_in_flight", "Requests that have come and are not over.").WithLabelValues(),
		requests: f.counter("requests_total",
			"Requests that are over, by status class and error code. The code is empty where nothing went wrong.",
			"tenant", "dialect", "model", "status", "code"),
		gone:    f.counter("client_gone_total", "Clients that left before they were answered.").WithLabelValues(),
		seconds: f.seconds("request_seconds", "From a request's header to the end of its answer.", answerBuckets, "tenant"),
		firstByte: f.seconds("upstream_first_byte_seconds", "From the call upstream to the first byte of the answer's body.",
			answerBuckets, "tenant"),
		overhead: f.seconds("overhead_seconds",
			"Time of our own, condensing apart: from a request's last byte to the call upstream (request), and how long the end of the answer was held back for the log (answer).",
			overheadBuckets, "tenant", "part"),
		tokens: f.counter("tokens_total",
			"Prompt tokens that clients sent (in) and that were forwarded after condensing (forwarded), by our count, and what upstream reported (prompt, cached, which is part of it, completion).",
			"tenant", "model", "stage"),
		limited: f.counter("limited_total", "Requests refused for a limit of their tenant: concurrent, requests, tokens or body.",
			"tenant", "limit"),
	}
}

// savings is what condensing saved and cost. Net is one less the other.
type savings struct {
	tokens      *prometheus.CounterVec
	spentTokens *prometheus.CounterVec
	usd         *prometheus.CounterVec
	spentUSD    *prometheus.CounterVec
}

func newSavings(f *families) savings {
	return savings{
		tokens: f.counter("saved_tokens_total", "Prompt tokens that clients sent and that were not forwarded.", "tenant", "model"),
		spentTokens: f.counter("spent_tokens_total",
			"Tokens that condensing cost: of own calls (summariser), and by which requests became longer (request).",
			"tenant", "model", "kind"),
		usd: f.counter("saved_usd_total",
			"What requests cost less than they would have as they came, an ideal prompt cache included. Models with a known price.",
			"tenant", "model"),
		spentUSD: f.counter("spent_usd_total",
			"What condensing cost: own calls (summariser), and requests that cost more because the prompt cache had to be written again (cache).",
			"tenant", "model", "kind"),
	}
}

// history is what was recognised and condensed.
type history struct {
	recognised *prometheus.CounterVec
	sessions   *prometheus.CounterVec
	threads    *prometheus.CounterVec
	condensed  *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	relieved   *prometheus.CounterVec
}

func newHistoryFamilies(f *families) history {
	return history{
		recognised: f.counter("recognised_total", "Requests recognised, by what: key, prefix, trace or new.", "tenant", "source"),
		sessions:   f.counter("sessions_begun_total", "Sessions begun.", "tenant"),
		threads:    f.counter("threads_begun_total", "Threads begun, by how: new, or the fork of another.", "tenant", "kind"),
		condensed: f.counter("condensations_total",
			"Condensations, by outcome: condensed, fallback (without a summary), failed (nothing forgotten), observed (only reported).",
			"tenant", "condenser", "reason", "outcome"),
		seconds:  f.seconds("condense_seconds", "How long a request waited for a condensation.", answerBuckets, "tenant"),
		relieved: f.counter("overflows_relieved_total", "Requests that overflowed upstream's window, condensed and sent again.", "tenant"),
	}
}

// own is our own model calls.
type own struct {
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	tokens   *prometheus.CounterVec
}

func newOwn(f *families) own {
	return own{
		seconds: f.seconds("summariser_seconds", "Calls of a summariser, by outcome: replied or failed.", answerBuckets,
			"tenant", "outcome"),
		failures: f.counter("summariser_failures_total",
			"Calls of a summariser that gave no reply, replies that were no good, and prompts that could not be made, by kind.",
			"tenant", "kind"),
		tokens: f.counter("summariser_tokens_total", "Tokens of own calls, as reported: prompt, cached, completion.",
			"tenant", "model", "kind"),
	}
}

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
			"Log lines left out: of plain requests beyond the limit (sampled), and because nobody took them (full).", "cause"),
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

// LinesLost counts log lines that nobody took.
func (m *Metrics) LinesLost(n int) { m.process.lines.WithLabelValues("full").Add(float64(n)) }

// ExportFailed counts spans that the collector did not take.
func (m *Metrics) ExportFailed() { m.process.exports.Inc() }

func (m *Metrics) clientGone() { m.traffic.gone.Inc() }

func (m *Metrics) limited(tenant, limit string) {
	m.traffic.limited.WithLabelValues(tenant, limit).Inc()
}

func (m *Metrics) panicked() { m.process.panics.Inc() }

func (m *Metrics) condensed(tenant, condenser string, c session.Condensation, fallback error) {
	outcome := "condensed"
	if fallback != nil {
		outcome = "fallback"
	}
	m.history.condensed.WithLabelValues(tenant, condenser, string(c.Reason), outcome).Inc()
}

func (m *Metrics) notCondensed(tenant, condenser string, reason session.Reason) {
	m.history.condensed.WithLabelValues(tenant, condenser, string(reason), "failed").Inc()
}

func (m *Metrics) observed(tenant, condenser string, reason session.Reason) {
	m.history.condensed.WithLabelValues(tenant, condenser, string(reason), "observed").Inc()
}

// badSummary counts a summary that was no good, or a prompt that could not be made.
func (m *Metrics) badSummary(tenant string, kind condense.Fault) {
	m.own.failures.WithLabelValues(tenant, string(kind)).Inc()
}
