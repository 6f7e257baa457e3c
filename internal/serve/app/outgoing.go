package app

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// confinement sends requests to addresses in files that teams write. It opens only connections that tenants_hosts permits, and shares none
// with the transport for the operator's addresses.
type confinement struct {
	allowed   []string // tenants_hosts
	guard     dial.Guard
	direct    *proxy.Transport
	marked    http.RoundTripper // direct, with the mark by which a loop is recognised
	byProxies http.RoundTripper // for requests that the environment sends to a proxy
}

// confinements holds the confinement of the configuration that was built last, and earlier ones, which requests may still use. It is safe for
// concurrent use.
type confinements struct {
	mu      sync.Mutex
	newest  *confinement // nil: no configuration was built
	earlier []*confinement
}

// load returns the confinement of the configuration that was built last.
func (c *confinements) load() *confinement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// closeEarlier closes the idle connections of all but the newest confinement. Call it when new requests use only the newest one, because a
// transport that sends another request keeps the connection open again.
func (c *confinements) closeEarlier() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, old := range c.earlier {
		old.direct.CloseIdleConnections()
	}
	c.earlier = nil
}

// closeAll closes all idle connections.
func (c *confinements) closeAll() {
	c.closeEarlier()
	if newest := c.load(); newest != nil {
		newest.direct.CloseIdleConnections()
	}
}

// confine makes a confinement for tenants_hosts the newest one. If the list has not changed, the current confinement and its connections stay.
func (c *calls) confine(cfg *config.Config) {
	c.confined.mu.Lock()
	defer c.confined.mu.Unlock()
	if old := c.confined.newest; old != nil {
		if slices.Equal(old.allowed, cfg.TenantsHosts) {
			return
		}
		c.confined.earlier = append(c.confined.earlier, old)
	}
	list := hosts.NewList(cfg.TenantsHosts)
	guard := dial.Guard{Own: &c.own, Only: &list}
	direct := proxy.NewTransport(0, guard)
	c.confined.newest = &confinement{allowed: cfg.TenantsHosts, guard: guard, direct: direct, marked: c.mark(direct), byProxies: c.transport}
}

// RoundTrip implements http.RoundTripper.
func (c *confinement) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := http.ProxyFromEnvironment(r)
	if via == nil && err == nil {
		return c.marked.RoundTrip(r)
	}
	if err := c.guard.Permits(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return c.byProxies.RoundTrip(r)
}

// divided sends requests to addresses that the operator configures by one transport, and all others by a confined one.
type divided struct {
	operators map[string]bool // scheme and host
	trusted   http.RoundTripper
	confined  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d *divided) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.operators[site(r.URL)] {
		return d.trusted.RoundTrip(r)
	}
	return d.confined.RoundTrip(r)
}

func site(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// divide returns a transport for the operator's addresses, except those at the same host as one of confined.
func (c *calls) divide(cfg *config.Config, confined []config.Address) *divided {
	d := &divided{operators: map[string]bool{}, trusted: c.transport, confined: c.confined.load()}
	mark := func(addresses []config.Address, operators bool) {
		for _, a := range addresses {
			if u, err := url.Parse(a.URL); err == nil {
				d.operators[site(u)] = operators
			}
		}
	}
	mark(cfg.Addresses(), true)
	mark(confined, false)
	return d
}

// transportOf returns the transport for a tenant's requests. Call it after confine.
func (c *calls) transportOf(cfg *config.Config, t config.Tenant) http.RoundTripper {
	own := t.Addresses("")
	if !t.Confined || len(own) == 0 {
		return c.transport
	}
	return c.divide(cfg, own)
}

// useForWindows makes a configuration's transports the ones by which servers are asked for their context windows. Call it after confine.
func (c *calls) useForWindows(cfg *config.Config) {
	transports := map[string]http.RoundTripper{}
	for _, t := range cfg.EveryTenant() {
		transports[t.Name] = c.transportOf(cfg, t)
	}
	c.windows.Store(&transports)
}

// windowTransport returns the transport by which a server is asked for a context window on behalf of a tenant. A tenant that a reload has just
// removed gets the confined one, because it is no longer known whether its file was trusted.
func (c *calls) windowTransport(tenant string) http.RoundTripper {
	if t, known := (*c.windows.Load())[tenant]; known {
		return t
	}
	return c.confined.load()
}
