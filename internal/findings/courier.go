package findings

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Store is what a courier needs of the store.
type Store interface {
	session.Outbox
	Thread(ctx context.Context, id session.ThreadID) (session.Thread, error)
	Summary(ctx context.Context, id session.CondensationID) (string, error)
	Lock(ctx context.Context, thread session.ThreadID, ttl time.Duration) (session.Lease, error)
}

// Outcome is what became of findings.
type Outcome string

// The outcomes. Those from Full on are losses.
const (
	Promised  Outcome = "promised"
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"  // a try; it is tried again
	Full      Outcome = "full"    // too many were waiting, and it was not promised
	Unnoted   Outcome = "store"   // likewise, since the store did not take the notice
	Expired   Outcome = "expired" // it could not be delivered for too long
	Gone      Outcome = "gone"    // its conversation was deleted, or has expired, before it was delivered
)

// Outcomes are all of them.
func Outcomes() []Outcome {
	return []Outcome{Promised, Delivered, Failed, Full, Unnoted, Expired, Gone}
}

// Watch is told what a courier does. It may be called concurrently.
type Watch interface {
	Findings(tenant string, o Outcome)
	// Sink is told when a tenant's sink begins to fail, and with nil when it works again.
	Sink(tenant string, err error)
	// Unread is told why findings of a tenant could not be read in a round. They are tried again in a later one.
	Unread(tenant string, err error)
}

// Route is where the findings of a tenant go.
type Route struct {
	Sink       Sink
	MaxPending int           // that wait at most
	MaxAge     time.Duration // for which delivery is tried
}

// Options are what a Courier is made of.
type Options struct {
	Store Store
	Watch Watch
	Poll  time.Duration // how often to look for what other replicas have left; 0: a quarter of a minute
}

// Courier delivers findings. All methods may be called concurrently.
type Courier struct {
	o      Options
	mu     sync.Mutex
	rounds map[string]*rounds // by tenant
	all    sync.WaitGroup
	closed bool
}

// New makes a courier that has no routes yet. Close it.
func New(o Options) *Courier {
	if o.Poll == 0 {
		o.Poll = 15 * time.Second
	}
	return &Courier{o: o, rounds: map[string]*rounds{}}
}

// Swap puts other routes in force, by tenant. What is under way ends as it began; what waits goes by the new route of its tenant, and waits
// on if there is none.
func (c *Courier) Swap(routes map[string]Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for tenant, r := range c.rounds {
		if _, still := routes[tenant]; !still {
			r.stop()
			delete(c.rounds, tenant)
		}
	}
	for tenant, route := range routes {
		r := c.rounds[tenant]
		if r == nil {
			r = c.begin(tenant)
		}
		r.route.Store(&route)
		signal(r.swapped)
	}
}

// begin is called under mu.
func (c *Courier) begin(tenant string) *rounds {
	ctx, stop := context.WithCancel(context.Background())
	r := &rounds{o: &c.o, tenant: tenant, stop: stop, wake: make(chan struct{}, 1), swapped: make(chan struct{}, 1)}
	c.rounds[tenant] = r
	c.all.Go(func() { r.run(ctx) })
	return r
}

// Promise notes that a condensation is to be told of, before it is logged. What it returns is called once it is. It is not kept from
// being logged by what goes wrong here.
func (c *Courier) Promise(ctx context.Context, tenant string, thread session.ThreadID, made *session.Condensation) (logged func()) {
	nothing := func() {}
	c.mu.Lock()
	r := c.rounds[tenant]
	c.mu.Unlock()
	if r == nil || !promises(made) {
		return nothing
	}
	noted, err := c.o.Store.Enqueue(ctx, session.Notice{Tenant: tenant, Thread: thread, Made: made.Time}, r.route.Load().MaxPending)
	switch {
	case err != nil:
		c.o.Watch.Findings(tenant, Unnoted)
		return nothing
	case !noted:
		c.o.Watch.Findings(tenant, Full)
		return nothing
	}
	c.o.Watch.Findings(tenant, Promised)
	return func() { signal(r.wake) }
}

// Pending yields how many condensations wait to be told of, by tenant, as far as is known: all replicas share them.
func (c *Courier) Pending() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for tenant, r := range c.rounds {
			if !yield(tenant, int(r.pending.Load())) {
				return
			}
		}
	}
}

// Close ends what is under way and waits for that until ctx ends. What is not delivered waits in the store.
func (c *Courier) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	for _, r := range c.rounds {
		r.stop()
	}
	idle := len(c.rounds) == 0
	c.mu.Unlock()
	if idle {
		return nil
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.all.Wait()
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a sink is stuck: %w", ctx.Err())
	}
}

// signal sends to a channel that remembers one signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
