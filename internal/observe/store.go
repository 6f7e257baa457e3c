package observe

import (
	"context"
	"errors"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// StoreCalls returns a watch that measures the calls of a store. It creates the series of all operations and losses at 0,
// because increase() sees a first event only after a 0.
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
		m.store.losses.WithLabelValues(op)
	}
	return func(op string, begun time.Time, err error) {
		m.store.seconds.WithLabelValues(op).Observe(time.Since(begun).Seconds())
		if storeFailed(err) {
			m.store.errors.WithLabelValues(op).Inc()
		}
	}
}

// storeFailed reports whether err is a failure of the store: neither a regular result nor a caller's cancellation.
func storeFailed(err error) bool {
	for _, expected := range [...]error{session.ErrNotFound, session.ErrStale, session.ErrLocked, context.Canceled} {
		if errors.Is(err, expected) {
			return false
		}
	}
	return err != nil
}
