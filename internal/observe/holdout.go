package observe

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/internal/holdout"
)

// holdouts registers what sessions that are held out cost, and the others. All replicas share it.
func (f *families) holdouts(read iter.Seq2[string, holdout.Comparison]) {
	family := func(name, help, label string) func(out chan<- prometheus.Metric, tenant, which string, v float64) {
		labels := []string{"tenant", label}
		desc := prometheus.NewDesc(namespace+"_holdout_"+name, help, labels, nil)
		f.labels[namespace+"_holdout_"+name] = labels
		return func(out chan<- prometheus.Metric, tenant, which string, v float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, tenant, which)
		}
	}
	sessions := family("sessions", "Sessions of a tenant that holds some out, by arm: condensed or held_out.", "arm")
	steps := family("steps", "Requests of their runs that upstream answered.", "arm")
	unpriced := family("unpriced_requests", "Requests among all of theirs whose cost is not known. They count as free.", "arm")
	usd := family("usd", "What they cost, calls of summarisers included.", "arm")
	saved := family("saved_usd_per_session", "What condensing saves of a session: low, mean and high. Missing while that is not known.", "bound")
	more := family("more_steps_per_session", "How many more steps sessions take that are condensed, likewise.", "bound")
	arm := func(out chan<- prometheus.Metric, tenant, name string, a holdout.Arm) {
		sessions(out, tenant, name, float64(a.Sessions))
		steps(out, tenant, name, float64(a.Steps))
		unpriced(out, tenant, name, float64(a.Unpriced))
		usd(out, tenant, name, a.USD)
	}
	f.registry.MustRegister(prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		if read == nil {
			return
		}
		for tenant, c := range read {
			arm(out, tenant, "condensed", c.Condensed)
			arm(out, tenant, "held_out", c.HeldOut)
			if i := c.SavedUSD; i != nil {
				saved(out, tenant, "low", i.Low)
				saved(out, tenant, "mean", i.Mean)
				saved(out, tenant, "high", i.High)
			}
			if i := c.MoreSteps; i != nil {
				more(out, tenant, "low", i.Low)
				more(out, tenant, "mean", i.Mean)
				more(out, tenant, "high", i.High)
			}
		}
	}))
}
