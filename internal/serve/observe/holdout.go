package observe

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
)

// holdouts registers gauges that compare held-out with condensed sessions. The values are sums over all replicas. A scrape
// iterates over read once for all gauges.
func (f *families) holdouts(read iter.Seq2[string, holdout.Comparison]) {
	gauge := func(name, help, label string) *prometheus.Desc {
		name = namespace + "_holdout_" + name
		f.labels[name] = []string{"tenant", label}
		return prometheus.NewDesc(name, help, f.labels[name], nil)
	}
	sessions := gauge("sessions", "Sessions of a tenant that holds some out, by arm: condensed or held_out.", "arm")
	steps := gauge("steps", "Answered requests of these sessions' agent runs.", "arm")
	unpriced := gauge("unpriced_requests", "Requests of these sessions whose cost is not known. They count as free.", "arm")
	failed := gauge("errors", "Requests of these sessions' agent runs that upstream refused or failed.", "arm")
	usd := gauge("usd", "Cost of these sessions, including calls to summarisers.", "arm")
	saved := gauge("saved_usd_per_session", "What condensing saves per session: low, mean and high. Missing while that is not known.", "bound")
	more := gauge("more_steps_per_session", "How many more steps condensed sessions take: low, mean and high. Missing while that is not known.", "bound")

	f.registry.MustRegister(prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		if read == nil {
			return
		}
		for tenant, c := range read {
			emit := func(d *prometheus.Desc, label string, v float64) {
				out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, tenant, label)
			}
			for arm, a := range map[string]holdout.Arm{"condensed": c.Condensed, "held_out": c.HeldOut} {
				emit(sessions, arm, float64(a.Sessions))
				emit(steps, arm, float64(a.Steps))
				emit(unpriced, arm, float64(a.Unpriced))
				emit(failed, arm, float64(a.Errors))
				emit(usd, arm, a.USD)
			}
			for d, i := range map[*prometheus.Desc]*holdout.Interval{saved: c.SavedUSD, more: c.MoreSteps} {
				if i != nil {
					emit(d, "low", i.Low)
					emit(d, "mean", i.Mean)
					emit(d, "high", i.High)
				}
			}
		}
	}))
}
