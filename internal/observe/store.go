package observe

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// StoreCalls measures a store's calls.
func (m *Metrics) StoreCalls() session.Watch {
	for _, op := range [...]string{
		"secret", "find", "thread", "append", "condense", "summary", "events", "trace", "mark", "session", "lock", "save",
	} {
		m.store.seconds.WithLabelValues(op)
		m.store.errors.WithLabelValues(op)
	}
	for _, op := range [...]string{
		"resolve", "append", "append_queue_full", "mark answer", "save", "save_queue_full", "compare", "compare_queue_full",
		"budget", "shared_limit", "summary_unreadable",
	} {
		m.store.losses.WithLabelValues(op) // increase() sees a first loss only where a 0 came before it
	}
	return func(op string, begun time.Time, err error) {
		m.store.seconds.WithLabelValues(op).Observe(time.Since(begun).Seconds())
		if failed(err) {
			m.store.errors.WithLabelValues(op).Inc()
		}
	}
}

// embedded registers a gauge of the embedded store's size, which has no series where that is 0 or there is no such store.
func (f *families) embedded(name, help string, read func() (StoreSize, bool), value func(StoreSize) int64) {
	desc := prometheus.NewDesc(namespace+"_"+name, help, nil, nil)
	f.add(name, prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		if read == nil {
			return
		}
		if size, known := read(); known && value(size) > 0 {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value(size)))
		}
	}), nil)
}

// failed tells a failure of the store from an answer, and from a caller who gave up.
func failed(err error) bool {
	for _, answer := range [...]error{session.ErrNotFound, session.ErrStale, session.ErrLocked, context.Canceled} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return err != nil
}
