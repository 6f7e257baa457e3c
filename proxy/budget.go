package proxy

import "sync"

// A client may hold share times as many bytes as are free. Some bytes are therefore left for the next client, however many clients there are. A
// client that is alone may hold four fifths of the budget, and all of it for a single body.
const (
	share         = 4
	strangerShare = 1
)

// client is charged for bytes: a tenant, or one credential of an anonymous tenant.
type client struct {
	tenant     string
	credential credential // zero: all of the tenant's
	stranger   bool       // upstream has not accepted it yet
}

// budget bounds the request bytes that the process holds at one time, and the share of one client. It never blocks.
type budget struct {
	limit     int64
	mu        sync.Mutex
	used      int64
	strangers int64 // the part of used that strangers hold. They have one share together, since credentials can be made up
	held      map[client]int64
}

func newBudget(limit int64) *budget { return &budget{limit: limit, held: map[client]int64{}} }

// take reserves n more bytes for a body that already holds some of its client's. The error is an apiError.
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

// charge is what a client is charged for bytes that it holds for one purpose.
type charge struct {
	client client
	bytes  int64
}

// resize returns the charge for n bytes in place of what it was for. It reports whether there was room for them; otherwise the charge stays.
func (b *budget) resize(c charge, n int64) (_ charge, ok bool) {
	switch more := n - c.bytes; {
	case more > 0:
		if b.take(c.client, more, c.bytes) != nil {
			return c, false
		}
	case more < 0:
		b.give(c.client, -more)
	}
	c.bytes = n
	return c, true
}

// add must be called with mu held.
func (b *budget) add(c client, n int64) {
	b.used += n
	if c.stranger {
		b.strangers += n
	}
	b.held[c] += n
	if b.held[c] == 0 {
		delete(b.held, c)
	}
}

// HeldBytes is how many request bytes a tenant holds.
type HeldBytes struct {
	Bytes int64 // all of its clients together
	Most  int64 // the client that holds most
}

// byTenant returns what each tenant holds, and all of them together.
func (b *budget) byTenant() (all map[string]HeldBytes, used int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all = map[string]HeldBytes{}
	for c, n := range b.held {
		h := all[c.tenant]
		all[c.tenant] = HeldBytes{h.Bytes + n, max(h.Most, n)}
	}
	return all, b.used
}
