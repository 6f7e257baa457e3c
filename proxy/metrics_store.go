package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// storeFamilies is how the store does.
type storeFamilies struct {
	seconds  *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	losses   *prometheus.CounterVec
	degraded prometheus.Gauge
}

func newStoreFamilies(f *families) storeFamilies {
	return storeFamilies{
		seconds: f.seconds("store_seconds", "Calls of the store.", storeBuckets, "op"),
		errors: f.counter("store_errors_total",
			"Calls of the store that failed. What a store answers (not found, stale, locked) is no failure.", "op"),
		losses:   f.counter("store_losses_total", "Requests not recognised and writes lost because the store was away.", "op"),
		degraded: f.gauge("store_degraded", "1 while the store can not be reached, or takes no writes.").WithLabelValues(),
	}
}

func (m *Metrics) degraded(away bool) {
	m.store.degraded.Set(0)
	if away {
		m.store.degraded.Set(1)
	}
}

func (m *Metrics) unrecognised() { m.store.losses.WithLabelValues("resolve").Inc() }

func (m *Metrics) lost(op string) { m.store.losses.WithLabelValues(op).Inc() }

func (m *Metrics) skipped() { m.store.losses.WithLabelValues("append_queue_full").Inc() }

// Store measures a store's calls. What the store offers beside session.Store is asked of the store itself.
func (m *Metrics) Store(store session.Store) session.Store {
	op := func(name string) operation {
		return operation{seconds: m.store.seconds.WithLabelValues(name), errors: m.store.errors.WithLabelValues(name)}
	}
	return &measured{
		Store: store, secret: op("secret"), find: op("find"), thread: op("thread"), append: op("append"),
		condense: op("condense"), summary: op("summary"), events: op("events"), trace: op("trace"), mark: op("mark"),
		session: op("session"), lock: op("lock"),
	}
}

// measured is a store whose calls are measured.
type measured struct {
	session.Store
	secret, find, thread, append, condense, summary, events, trace, mark, session, lock operation
}

// operation is one kind of call.
type operation struct {
	seconds prometheus.Observer
	errors  prometheus.Counter
}

func (o *operation) done(begun time.Time, err error) {
	o.seconds.Observe(time.Since(begun).Seconds())
	if failed(err) {
		o.errors.Inc()
	}
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

// Secret implements session.Store.
func (m *measured) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	begun := time.Now()
	secret, err := m.Store.Secret(ctx, proposed)
	m.secret.done(begun, err)
	return secret, err
}

// Find implements session.Store.
func (m *measured) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	begun := time.Now()
	found, err := m.Store.Find(ctx, hashes, hint, traces...)
	m.find.done(begun, err)
	return found, err
}

// Thread implements session.Store.
func (m *measured) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	begun := time.Now()
	thread, err := m.Store.Thread(ctx, id)
	m.thread.done(begun, err)
	return thread, err
}

// Append implements session.Store.
func (m *measured) Append(ctx context.Context, b session.Batch) error {
	begun := time.Now()
	err := m.Store.Append(ctx, b)
	m.append.done(begun, err)
	return err
}

// Condense implements session.Store.
func (m *measured) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	begun := time.Now()
	c, err := m.Store.Condense(ctx, id, c)
	m.condense.done(begun, err)
	return c, err
}

// Summary implements session.Store.
func (m *measured) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	begun := time.Now()
	text, err := m.Store.Summary(ctx, id)
	m.summary.done(begun, err)
	return text, err
}

// Events implements session.Store.
func (m *measured) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	begun := time.Now()
	events, err := m.Store.Events(ctx, id, from, limit)
	m.events.done(begun, err)
	return events, err
}

// Trace implements session.Store.
func (m *measured) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	begun := time.Now()
	places, err := m.Store.Trace(ctx, traces)
	m.trace.done(begun, err)
	return places, err
}

// Mark implements session.Store.
func (m *measured) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	begun := time.Now()
	err := m.Store.Mark(ctx, traces, at)
	m.mark.done(begun, err)
	return err
}

// Session implements session.Store.
func (m *measured) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	begun := time.Now()
	s, err := m.Store.Session(ctx, id)
	m.session.done(begun, err)
	return s, err
}

// Lock implements session.Store.
func (m *measured) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (func(), error) {
	begun := time.Now()
	unlock, err := m.Store.Lock(ctx, id, ttl)
	m.lock.done(begun, err)
	return unlock, err
}
