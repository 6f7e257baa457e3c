package sessiontest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// AllMethods makes every method of a Panicking panic.
const AllMethods = "*"

// Panicking is a store whose methods panic on request, each after its work is done. It is safe for concurrent use.
type Panicking struct {
	session.Backend

	mu     sync.Mutex
	method string
	count  int
}

// NewPanicking returns a Panicking that passes all calls to store.
func NewPanicking(store session.Backend) *Panicking {
	p := &Panicking{}
	p.Backend = session.Guard(store, func(op string, _ time.Time, _ error) { p.panicIn(op) })
	return p
}

// Panic makes a method panic from now on. The method is named as by session.Watch, in any case. "unlock" is the Release of a
// lease, AllMethods is every method, and "" is none.
func (p *Panicking) Panic(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.count = method, 0
}

// Count returns how many calls have panicked since Panic was called.
func (p *Panicking) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *Panicking) panicIn(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.method == AllMethods || strings.EqualFold(p.method, method) {
		p.count++
		panic("store: " + method)
	}
}

// Lock panics before it takes the lock, which would stay taken otherwise.
func (p *Panicking) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	p.panicIn("lock")
	lease, err := p.Backend.Lock(ctx, id, ttl)
	return session.Lease{Renew: lease.Renew, Release: func() {
		p.panicIn("unlock")
		lease.Release()
	}}, err
}
