package observe

import (
	"context"
	"errors"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Store measures a store's calls. What the store offers besides session.Store is asked of the store itself.
func (m *Metrics) Store(store session.Store) session.Store {
	for _, op := range [...]string{
		"secret", "find", "thread", "append", "condense", "summary", "events", "trace", "mark", "session", "lock",
	} {
		m.store.seconds.WithLabelValues(op)
		m.store.errors.WithLabelValues(op)
	}
	return &measured{Store: store, families: &m.store}
}

// measured is a store whose calls are measured.
type measured struct {
	session.Store
	families *storeFamilies
}

// done measures a call that is over.
func (m *measured) done(op string, begun time.Time, err *error) {
	m.families.seconds.WithLabelValues(op).Observe(time.Since(begun).Seconds())
	if failed(*err) {
		m.families.errors.WithLabelValues(op).Inc()
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
func (m *measured) Secret(ctx context.Context, proposed session.Secret) (_ session.Secret, err error) {
	defer m.done("secret", time.Now(), &err)
	return m.Store.Secret(ctx, proposed)
}

// Find implements session.Store.
func (m *measured) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (_ session.Found, err error) {
	defer m.done("find", time.Now(), &err)
	return m.Store.Find(ctx, hashes, hint, traces...)
}

// Thread implements session.Store.
func (m *measured) Thread(ctx context.Context, id session.ThreadID) (_ session.Thread, err error) {
	defer m.done("thread", time.Now(), &err)
	return m.Store.Thread(ctx, id)
}

// Append implements session.Store.
func (m *measured) Append(ctx context.Context, b session.Batch) (err error) {
	defer m.done("append", time.Now(), &err)
	return m.Store.Append(ctx, b)
}

// Condense implements session.Store.
func (m *measured) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (_ session.Condensation, err error) {
	defer m.done("condense", time.Now(), &err)
	return m.Store.Condense(ctx, id, c)
}

// Summary implements session.Store.
func (m *measured) Summary(ctx context.Context, id session.CondensationID) (_ string, err error) {
	defer m.done("summary", time.Now(), &err)
	return m.Store.Summary(ctx, id)
}

// Events implements session.Store.
func (m *measured) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) (_ []session.Event, err error) {
	defer m.done("events", time.Now(), &err)
	return m.Store.Events(ctx, id, from, limit)
}

// Trace implements session.Store.
func (m *measured) Trace(ctx context.Context, traces []session.Hash) (_ []session.Place, err error) {
	defer m.done("trace", time.Now(), &err)
	return m.Store.Trace(ctx, traces)
}

// Mark implements session.Store.
func (m *measured) Mark(ctx context.Context, traces []session.Hash, at session.Place) (err error) {
	defer m.done("mark", time.Now(), &err)
	return m.Store.Mark(ctx, traces, at)
}

// Session implements session.Store.
func (m *measured) Session(ctx context.Context, id session.SessionID) (_ session.Session, err error) {
	defer m.done("session", time.Now(), &err)
	return m.Store.Session(ctx, id)
}

// Lock implements session.Store.
func (m *measured) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (_ func(), err error) {
	defer m.done("lock", time.Now(), &err)
	return m.Store.Lock(ctx, id, ttl)
}
