package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/url"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Tenant is a user of the proxy with its own keys, upstream credential and condenser.
type Tenant struct {
	engine.Tenant
	Keys       [][sha256.Size]byte // SHA-256 of its API keys
	Upstream   UpstreamConfig
	Notify     bool // tell the client in words what was condensed
	LogContent bool // log what its clients say and what they are answered
	Limits     limit.Tenant
	Draw       limit.Draw  // what is taken a minute is taken together with other replicas; nil: of this one
	Cooling    func() bool // whether its summariser is left alone because it failed; nil: never
	gate       *gate       // what it has taken; Server.Swap sets it
}

// UpstreamConfig is where a tenant's requests go.
type UpstreamConfig struct {
	BaseURL *url.URL
	APIKey  string        // empty: the client's own Authorization is forwarded
	Timeout time.Duration // of a whole answer, 0: no limit

	AlternateRoles bool // it takes no two messages of a user, or of an assistant, in a row

	Compacts Compacts // whether it compacts histories
}

// Tenants are the users. A single anonymous one takes every request.
type Tenants []*Tenant

// of gives the tenant that an API key belongs to, nil if none. It takes as long for every key: all keys are compared,
// each in constant time.
func (t Tenants) of(key string) (found *Tenant) {
	sum := sha256.Sum256([]byte(key))
	for _, tenant := range t {
		if tenant.Anonymous {
			found = tenant
		}
		for i := range tenant.Keys {
			if subtle.ConstantTimeCompare(sum[:], tenant.Keys[i][:]) == 1 {
				found = tenant
			}
		}
	}
	return found
}

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

// client is whose bytes the request holds.
func (r *request) client() client {
	if !r.tenant.Anonymous {
		return client{tenant: r.tenant.Name}
	}
	return client{r.tenant.Name, r.asked.credential, !r.server.accepted.Contains(r.asked.credential)}
}

// trusted reports whether the request's client may spend the operator's money: an authenticated one, or one that upstream has
// accepted. A condensation may ask after the request is over.
func (r *request) trusted() func() bool {
	if !r.tenant.Anonymous {
		return func() bool { return true }
	}
	known, c := r.server.accepted, r.asked.credential
	return func() bool { return known.Contains(c) }
}

// noteAccepted remembers the client's credential if upstream has accepted it: if it has answered a conversation. Other paths, and
// errors, may be answered before a key is looked at.
func (r *request) noteAccepted(status int) {
	if r.tenant.Anonymous && r.asked.dialect != nil && !r.asked.counts && status/100 == 2 {
		r.server.accepted.Add(r.asked.credential, struct{}{})
	}
}
