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
