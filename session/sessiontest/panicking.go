package sessiontest

import (
	"context"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Panicking is a store of which one method, or each, panics while it is told to. It counts how often it did.
type Panicking struct {
	session.Backend

	mu     sync.Mutex
	method string
	count  int
}

// AllMethods makes each method of a Panicking panic.
const AllMethods = "*"

// Methods lists the methods of a store, but for Close.
func Methods() []string {
	return []string{
		"Secret", "Find", "Thread", "Append", "Condense", "Summary", "Events", "Trace", "Mark", "Session", "Lock", "unlock",
		"Sessions", "Forget", "Request", "Ping",
	}
}

// Panic makes a method panic from now on; AllMethods makes all, "" none.
func (p *Panicking) Panic(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.count = method, 0
}

// Count is how often a method has panicked since Panic was called.
func (p *Panicking) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *Panicking) enter(method string) session.Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.method == method || p.method == AllMethods {
		p.count++
		panic("store: " + method)
	}
	return p.Backend
}

// Secret implements session.Store.
func (p *Panicking) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	return p.enter("Secret").Secret(ctx, proposed)
}

// Find implements session.Store.
func (p *Panicking) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	return p.enter("Find").Find(ctx, hashes, hint, traces...)
}

// Thread implements session.Store.
func (p *Panicking) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	return p.enter("Thread").Thread(ctx, id)
}

// Append implements session.Store.
func (p *Panicking) Append(ctx context.Context, b session.Batch) error {
	return p.enter("Append").Append(ctx, b)
}

// Condense implements session.Store.
func (p *Panicking) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	return p.enter("Condense").Condense(ctx, id, c)
}

// Summary implements session.Store.
func (p *Panicking) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	return p.enter("Summary").Summary(ctx, id)
}

// Events implements session.Store.
func (p *Panicking) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	return p.enter("Events").Events(ctx, id, from, limit)
}

// Trace implements session.Store.
func (p *Panicking) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	return p.enter("Trace").Trace(ctx, traces)
}

// Mark implements session.Store.
func (p *Panicking) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	return p.enter("Mark").Mark(ctx, traces, at)
}

// Session implements session.Store.
func (p *Panicking) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	return p.enter("Session").Session(ctx, id)
}

// Lock implements session.Store.
func (p *Panicking) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (func(), error) {
	unlock, err := p.enter("Lock").Lock(ctx, id, ttl)
	return func() {
		p.enter("unlock")
		unlock()
	}, err
}

// Sessions implements session.Archive.
func (p *Panicking) Sessions(ctx context.Context, q session.SessionQuery) (session.SessionPage, error) {
	return p.enter("Sessions").Sessions(ctx, q)
}

// Forget implements session.Archive.
func (p *Panicking) Forget(ctx context.Context, id session.SessionID) error {
	return p.enter("Forget").Forget(ctx, id)
}

// Request implements session.Archive.
func (p *Panicking) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	return p.enter("Request").Request(ctx, id, at)
}

// Ping implements session.Backend.
func (p *Panicking) Ping(ctx context.Context) error { return p.enter("Ping").Ping(ctx) }
