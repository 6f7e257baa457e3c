package proxy

import (
	"crypto/sha256"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// credential is a hash of a client's keys, of the tenant it came to and of where that forwards to.
type credential [sha256.Size]byte

func credentialOf(t *Tenant, keys string) credential {
	h := sha256.New()
	for _, part := range [...]string{t.Name, t.Upstream.BaseURL.String(), keys} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return credential(h.Sum(nil))
}

// mostAccepted is how many credentials are remembered, the newest.
const mostAccepted = 16 << 10

// accepted remembers the credentials that upstream has accepted, for tenants that authenticate no clients themselves.
type accepted struct {
	mu  sync.Mutex
	all *simplelru.LRU[credential, struct{}]
}

func (a *accepted) has(c credential) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, is := a.all.Get(c)
	return is
}

func (a *accepted) add(c credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.Add(c, struct{}{})
}

// client is whose bytes the request holds.
func (r *request) client() client {
	if !r.tenant.Anonymous {
		return client{tenant: r.tenant.Name}
	}
	return client{r.tenant.Name, r.asked.credential, !r.server.accepted.has(r.asked.credential)}
}

// trusted reports whether the request's client may spend the operator's money: an authenticated one, or one that upstream has
// accepted. A condensation may ask after the request is over.
func (r *request) trusted() func() bool {
	if !r.tenant.Anonymous {
		return func() bool { return true }
	}
	known, c := &r.server.accepted, r.asked.credential
	return func() bool { return known.has(c) }
}

// noteAccepted remembers the client's credential if upstream has accepted it: if it has answered a conversation. Other paths, and
// errors, may be answered before a key is looked at.
func (r *request) noteAccepted(status int) {
	if r.tenant.Anonymous && r.asked.dialect != nil && !r.asked.counts && status/100 == 2 {
		r.server.accepted.add(r.asked.credential)
	}
}
