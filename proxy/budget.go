package proxy

import "sync"

// How many times the bytes that are left free one client may hold. Whatever the number of clients, some room is left for another
// one; one alone has four fifths of the budget, and all of it for a single body.
const (
	share         = 4
	strangerShare = 1
)

// client is who holds bytes: a tenant, or one credential of a tenant that takes any.
type client struct {
	tenant     string
	credential credential // none: all of the tenant's
	stranger   bool       // upstream has not accepted it yet
}

// budget bounds the request bytes that the process holds at one time, and what of them one client holds. It never blocks.
type budget struct {
	limit     int64
	mu        sync.Mutex
	used      int64
	strangers int64 // of it, by all clients together that upstream has not accepted yet: their names cost nothing
	held      map[client]int64
}

func newBudget(limit int64) *budget { return &budget{limit: limit, held: map[client]int64{}} }

// take reserves n more bytes for a client's body that holds some, or says why not.
func (b *budget) take(c client, n, holds int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.limit - b.used - n
	fits := b.held[c]+n <= share*free
	if c.stranger {
		fits = b.held[c]+n <= strangerShare*free && b.strangers+n <= share*free
	}
	switch {
	case free < 0:
		return errOverloaded
	case b.used > holds && !fits:
		return errShare
	}
	b.add(c, n)
	return nil
}

func (b *budget) give(c client, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c, -n)
}

// add is called under mu.
func (b *budget) add(c client, n int64) {
	b.used += n
	if c.stranger {
		b.strangers += n
	}
	if b.held[c] += n; b.held[c] == 0 {
		delete(b.held, c)
	}
}

// Held is how many request bytes are held.
type Held struct {
	Bytes int64 // by all clients of a tenant
	Most  int64 // by one of them
}

// byTenant tells for each tenant what its clients hold, and what all do together.
func (b *budget) byTenant() (all map[string]Held, used int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all = map[string]Held{}
	for c, n := range b.held {
		h := all[c.tenant]
		all[c.tenant] = Held{h.Bytes + n, max(h.Most, n)}
	}
	return all, b.used
}
