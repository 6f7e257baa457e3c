package findings

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Outcome is what became of a condensation's findings.
type Outcome string

// Outcomes. From Full on, the findings are lost.
const (
	Promised  Outcome = "promised"
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"  // one attempt, which is repeated
	Full      Outcome = "full"    // not promised, because too many were pending
	Unnoted   Outcome = "store"   // not promised, because the store did not take the notice
	Expired   Outcome = "expired" // could not be delivered within MaxAge
	Gone      Outcome = "gone"    // the session was deleted, or expired, before delivery
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Promised, Delivered, Failed, Full, Unnoted, Expired, Gone}
}

// Observer is notified of what a courier does. Its methods may be called concurrently.
type Observer interface {
	Findings(tenant string, o Outcome)
	// Sink is called with an error when a tenant's sink begins to fail, and with nil when it works again.
	Sink(tenant string, err error)
	// Unread is called with the reason why a tenant's findings could not be read in a round. A later round tries them again.
	Unread(tenant string, err error)
}

// Route is where the findings of a tenant go.
type Route struct {
	Sink       Sink
	MaxPending int           // maximum number of condensations whose findings wait
	MaxAge     time.Duration // how long to try to deliver
}

// Courier delivers findings. It is safe for concurrent use.
type Courier struct {
	store    session.Store
	observer Observer
	mu       sync.Mutex
	rounds   map[string]*rounds // by tenant
	work     sync.WaitGroup     // includes the rounds of removed routes
	closed   bool
}

// New returns a courier without routes. Call Close when done.
func New(store session.Store, observer Observer) *Courier {
	return &Courier{store: store, observer: observer, rounds: map[string]*rounds{}}
}

// Swap replaces the routes, by tenant. A delivery in progress finishes on its old route. Pending findings take their tenant's new route, or
// keep waiting if there is none.
func (c *Courier) Swap(routes map[string]Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for tenant, r := range c.rounds {
		if _, ok := routes[tenant]; !ok {
			r.stop()
			delete(c.rounds, tenant)
		}
	}
	for tenant, route := range routes {
		if r := c.rounds[tenant]; r != nil {
			r.route.Store(&route)
			signal(r.swapped)
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		r := &rounds{courier: c, tenant: tenant, stop: stop, wake: make(chan struct{}, 1), swapped: make(chan struct{}, 1)}
		r.route.Store(&route)
		c.rounds[tenant] = r
		c.work.Go(func() { r.run(ctx) })
	}
}

// Promise writes a notice for a condensation that is about to be logged. The caller must call logged when the condensation was logged. Promise
// reports errors only to the Observer, because they must not prevent the condensation from being logged.
func (c *Courier) Promise(ctx context.Context, tenant string, thread session.ThreadID, made *session.Condensation) (logged func()) {
	nothing := func() {}
	c.mu.Lock()
	r := c.rounds[tenant]
	c.mu.Unlock()
	if r == nil || made.Model == "" || !made.Answers() || len(record.Findings(made.Summary)) == 0 {
		return nothing
	}
	noted, err := c.store.Enqueue(ctx, session.Notice{Tenant: tenant, Thread: thread, Made: made.Time}, r.route.Load().MaxPending)
	outcome := Promised
	if err != nil {
		outcome = Unnoted
	} else if !noted {
		outcome = Full
	}
	c.observer.Findings(tenant, outcome)
	if outcome != Promised {
		return nothing
	}
	return func() { signal(r.wake) }
}

// Pending yields the number of pending notices by tenant, as last counted. All replicas share them.
func (c *Courier) Pending(yield func(tenant string, n int) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tenant, r := range c.rounds {
		if !yield(tenant, int(r.pending.Load())) {
			return
		}
	}
}

// closeGrace is how long Close waits for a cancelled delivery, even if ctx has ended.
const closeGrace = time.Second

// Close cancels deliveries and waits for their end until ctx ends. Undelivered findings stay in the store.
func (c *Courier) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	for _, r := range c.rounds {
		r.stop()
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(closeGrace):
		return fmt.Errorf("close findings: a sink is stuck: %w", ctx.Err())
	}
}

// signal sends to a channel with a buffer of one, unless a signal is already pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
