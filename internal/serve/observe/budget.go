package observe

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/engine"
)

// budgets registers gauges of what is spent of tenants' budgets. A scrape iterates over read once for all gauges.
func (f *families) budgets(read iter.Seq2[string, engine.Spending]) {
	gauge := func(name, help string) *prometheus.Desc {
		name = namespace + "_budget_" + name
		f.labels[name] = []string{"tenant", "unit"}
		return prometheus.NewDesc(name, help, f.labels[name], nil)
	}
	limit := gauge("limit", "A tenant's budget for a period, in dollars (usd) or tokens.")
	spent := gauge("spent", "What is spent of the budget in the current period, by all replicas.")
	held := gauge("held", "What is reserved of the budget for requests under way, of all replicas.")
	ends := gauge("period_end_timestamp_seconds", "When the current period of the budget ends.")

	f.registry.MustRegister(prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		if read == nil {
			return
		}
		for tenant, s := range read {
			for d, v := range map[*prometheus.Desc]float64{limit: s.Limit, spent: s.Spent, held: s.Held, ends: float64(s.End.Unix())} {
				out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, tenant, s.Unit)
			}
		}
	}))
}
