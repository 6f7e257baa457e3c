package sessiontest

import (
	"context"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Panicking is a store of which one method, or each, panics while it is told to; "unlock" is that of what Lock gives. It
// counts how often it did.
type Panicking struct {
	session.Backend

	mu     sync.Mutex
	method string
	count  int
}

// AllMethods makes each method of a Panicking panic.
const AllMethods = "*"

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

// What follows implements session.Backend.

func (p *Panicking) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	return p.enter("Secret").Secret(ctx, proposed)
}

func (p *Panicking) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	return p.enter("Find").Find(ctx, hashes, hint, traces...)
}

func (p *Panicking) Save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	return p.enter("Save").Save(ctx, id, more)
}

func (p *Panicking) Saved(ctx context.Context, id session.ThreadID) (session.Savings, error) {
	return p.enter("Saved").Saved(ctx, id)
}

func (p *Panicking) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	return p.enter("Thread").Thread(ctx, id)
}

func (p *Panicking) Append(ctx context.Context, b session.Batch) error {
	return p.enter("Append").Append(ctx, b)
}

func (p *Panicking) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	return p.enter("Condense").Condense(ctx, id, c)
}

func (p *Panicking) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	return p.enter("Prepare").Prepare(ctx, id, c)
}

func (p *Panicking) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	return p.enter("Prepared").Prepared(ctx, id)
}

func (p *Panicking) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	return p.enter("Summary").Summary(ctx, id)
}

func (p *Panicking) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	return p.enter("Events").Events(ctx, id, from, limit)
}

func (p *Panicking) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	return p.enter("Trace").Trace(ctx, traces)
}

func (p *Panicking) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	return p.enter("Mark").Mark(ctx, traces, at)
}

func (p *Panicking) Enter(ctx context.Context, c session.Entry) error {
	return p.enter("Enter").Enter(ctx, c)
}

func (p *Panicking) Experiment(ctx context.Context, name string) (session.Experiment, error) {
	return p.enter("Experiment").Experiment(ctx, name)
}

func (p *Panicking) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	return p.enter("Session").Session(ctx, id)
}

func (p *Panicking) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	lease, err := p.enter("Lock").Lock(ctx, id, ttl)
	return session.Lease{Renew: lease.Renew, Release: func() {
		p.enter("unlock")
		lease.Release()
	}}, err
}

func (p *Panicking) Reserve(ctx context.Context, id string, charges []session.Charge) (session.Reserved, error) {
	return p.enter("Reserve").Reserve(ctx, id, charges)
}

func (p *Panicking) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return p.enter("Settle").Settle(ctx, id, charges)
}

func (p *Panicking) Enqueue(ctx context.Context, n session.Notice, limit int) (bool, error) {
	return p.enter("Enqueue").Enqueue(ctx, n, limit)
}

func (p *Panicking) Enqueued(ctx context.Context, tenant string, from, limit int) ([]session.Notice, int, error) {
	return p.enter("Enqueued").Enqueued(ctx, tenant, from, limit)
}

func (p *Panicking) Dequeue(ctx context.Context, n session.Notice) error {
	return p.enter("Dequeue").Dequeue(ctx, n)
}

func (p *Panicking) Sessions(ctx context.Context, q session.SessionQuery) (session.SessionPage, error) {
	return p.enter("Sessions").Sessions(ctx, q)
}

func (p *Panicking) Forget(ctx context.Context, id session.SessionID) error {
	return p.enter("Forget").Forget(ctx, id)
}

func (p *Panicking) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	return p.enter("Request").Request(ctx, id, at)
}

func (p *Panicking) Set(ctx context.Context, name string, value []byte) error {
	return p.enter("Set").Set(ctx, name, value)
}

func (p *Panicking) Settings(ctx context.Context) (map[string][]byte, error) {
	return p.enter("Settings").Settings(ctx)
}

func (p *Panicking) Ping(ctx context.Context) error { return p.enter("Ping").Ping(ctx) }
