package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Tenant is a group of clients with its own keys, upstream and condenser.
type Tenant struct {
	engine.Tenant
	Keys       [][sha256.Size]byte              // SHA-256 of its API keys
	Upstream   UpstreamConfig                   // of requests to all providers that are not in Providers
	Providers  map[provider.Name]UpstreamConfig // upstreams of single providers
	Gateway    bool                             // its keys are a gateway's, which may name another tenant by the hash of a client's key
	Notify     bool                             // send the client a sentence about what was condensed
	LogContent bool                             // log requests and answers in full
	ByPrice    bool                             // its condenser condenses when that pays
	Limits     limit.Tenant
	Draw       limit.Draw  // shares the limits per minute with other replicas; nil: they are this replica's own
	Cooling    func() bool // reports whether its summariser is cooling down after failures; nil: never
	gate       *gate       // set by Server.Swap
}

// UpstreamConfig is where a tenant's requests go.
type UpstreamConfig struct {
	BaseURL *url.URL
	APIKey  string        // empty: the client's own Authorization is forwarded
	Timeout time.Duration // for a whole answer; 0: no limit

	Transport http.RoundTripper // for this upstream only; nil: Options.Upstream

	AlternateRoles bool     // user and assistant messages have to alternate
	Compacts       Compacts // whether it compacts histories

	// Unpaid is set if the operator has keys for other upstreams of the tenant, but not for this one. Its clients send keys that are only
	// valid here, which must not go there.
	Unpaid bool
}

// upstreamFor returns the upstream of a request to a provider, nil if it has no key that is valid there. A client's key whose form shows that
// another provider issued it goes to that one, unless a key of the operator's replaces it.
func (t *Tenant) upstreamFor(p provider.Name, keys []string) *UpstreamConfig {
	up, issuer := t.upstream(p), issuerOf(keys)
	if issuer != "" && up.APIKey == "" {
		up = t.upstream(issuer)
		if provider.OfKey(keys[0]) == issuer { // the key by which the tenant is known is valid there
			return up
		}
	}
	if up.Unpaid {
		return nil
	}
	return up
}

// issuerOf returns the provider that issued a client's keys, empty if their form does not tell.
func issuerOf(keys []string) provider.Name {
	for _, key := range keys {
		if issuer := provider.OfKey(key); issuer != "" {
			return issuer
		}
	}
	return ""
}

func (t *Tenant) upstream(p provider.Name) *UpstreamConfig {
	if own, is := t.Providers[p]; is {
		return &own
	}
	return &t.Upstream
}

// Refused is a tenant that is configured, but in a way that cannot be used. Requests with its keys get an error that says so.
type Refused struct {
	Name string // empty: not known
	Keys [][sha256.Size]byte
}

// refusedBy returns the first tenant of a list to which an API key belongs, and whether there is one. It takes the same time for every key.
func refusedBy(all []Refused, key string) (found Refused, is bool) {
	sum := sha256.Sum256([]byte(key))
	for _, r := range all {
		for i := range r.Keys {
			if subtle.ConstantTimeCompare(sum[:], r.Keys[i][:]) == 1 && !is {
				found, is = r, true
			}
		}
	}
	return found, is
}

// Tenants lists the tenants. A single anonymous one takes every request.
type Tenants []*Tenant

// find returns the tenant to which an API key belongs, nil if there is none. It takes the same time for every key: all keys are compared, each
// in constant time.
func (t Tenants) find(key string) (found *Tenant) {
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

// named returns the tenant that has a key with this SHA-256, in hexadecimal; nil: there is none.
func (t Tenants) named(hash string) (found *Tenant) {
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	for _, tenant := range t {
		for i := range tenant.Keys {
			if subtle.ConstantTimeCompare(sum, tenant.Keys[i][:]) == 1 {
				found = tenant
			}
		}
	}
	return found
}

// credential is a hash of a client's keys, its tenant and the upstream of its request.
type credential [sha256.Size]byte

func credentialOf(t *Tenant, up *UpstreamConfig, keys string) credential {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", t.Name, up.BaseURL.String(), keys))
}

// maxAccepted is how many accepted credentials are remembered.
const maxAccepted = 16 << 10

// trusted returns a function that reports whether the client may spend the operator's money: it is authenticated, or upstream has accepted it.
// A condensation may call it after the request is over.
func (r *accepted) trusted() func() bool {
	anonymous, accepted, c := r.tenant.Anonymous, r.server.accepted, r.credential
	return func() bool { return !anonymous || accepted.Contains(c) }
}

// noteAccepted remembers the client's credential if upstream answered a conversation with it. Other paths, and errors, may be answered before
// upstream checks the key.
func (r *accepted) noteAccepted(status int) {
	if r.tenant.Anonymous && r.params.dialect != nil && !r.params.counts && status/100 == 2 {
		r.server.accepted.Add(r.credential, struct{}{})
	}
}
