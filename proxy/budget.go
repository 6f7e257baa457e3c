package proxy

import (
	"sync"
)

// How many times the bytes that are left free one account may hold. Whatever the number of clients, some room is left for another
// one; one alone has four fifths of the budget, and all of it for a single body.
const (
	share         = 4
	strangerShare = 1
)

// budget bounds the request bytes that the process holds at one time, and what of them one client holds. It never blocks.
type budget struct {
	limit     int64
	mu        sync.Mutex
	used      int64
	strangers account // of all clients together that upstream has not accepted yet: their names cost nothing
	accounts  map[client]*account
}

// client is who holds bytes: a tenant, or one credential of a tenant that takes any.
type client struct {
	tenant     string
	credential credential // none: all of the tenant's
	stranger   bool       // upstream has not accepted it yet
}

// account is what a client holds.
type account struct {
	of     *budget
	client client
	held   int64
	bodies int
}

func newBudget(limit int64) *budget { return &budget{limit: limit, accounts: map[client]*account{}} }

// open gives a client's account for one more body.
func (b *budget) open(c client) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[c]
	if a == nil {
		a = &account{of: b, client: c}
		b.accounts[c] = a
	}
	a.bodies++
	return a
}

// close ends what open began. All that was taken for the body must have been given back.
func (a *account) close() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.bodies--; a.bodies == 0 {
		delete(a.of.accounts, a.client)
	}
}

// take reserves n more bytes for a body that holds some, or says why not.
func (a *account) take(n, holds int64) error {
	b := a.of
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.limit - b.used - n
	switch {
	case free < 0:
		return errOverloaded()
	case b.used > holds && !a.fits(n, free):
		return errShare()
	}
	a.add(n)
	return nil
}

func (a *account) fits(n, free int64) bool {
	if a.client.stranger {
		return a.held+n <= strangerShare*free && a.of.strangers.held+n <= share*free
	}
	return a.held+n <= share*free
}

func (a *account) give(n int64) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.add(-n)
}

// add is called under mu.
func (a *account) add(n int64) {
	a.held += n
	a.of.used += n
	if a.client.stranger {
		a.of.strangers.held += n
	}
}

// Held is how many request bytes are held.
type Held struct {
	Bytes int64 // by all clients of a tenant
	Most  int64 // by one of them
}

// held tells for each tenant what its clients hold.
func (b *budget) held() map[string]Held {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]Held{}
	for c, a := range b.accounts {
		h := all[c.tenant]
		all[c.tenant] = Held{h.Bytes + a.held, max(h.Most, a.held)}
	}
	return all
}
