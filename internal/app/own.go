package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// lookupTimeout bounds the look-up of a host name that may be this machine's.
const lookupTimeout = 2 * time.Second

// checkLoops returns a problem for each base_url that is one of the listeners, which are host:port: each request would be forwarded to this
// proxy again. Host names are looked up only if the port is a listener's. One that cannot be looked up is no problem, since proxy.Marks
// stops a loop that is not seen here.
func checkLoops(cfg *config.Config, listeners ...string) error {
	var found config.Problems
	check := func(key, base string) {
		for _, listener := range listeners {
			if leadsTo(base, listener) {
				found.Add(key, "leads back to this proxy, which listens on %s: write the address of the model's server, such as "+
					"https://api.openai.com/v1", listener)
				return
			}
		}
	}
	check("upstream.base_url", cfg.Upstream.BaseURL)
	for _, t := range cfg.Tenants {
		if t.Confined { // dialling refuses it, and the files of others still count
			continue
		}
		check(keyOf(cfg, t)+"upstream.base_url", t.Upstream.BaseURL)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.LLMs)) {
		check(fmt.Sprintf("llms.%s.base_url", name), cfg.LLMs[name].BaseURL)
	}
	return found.Err()
}

// leadsTo reports whether a connection to a URL's server reaches a listener.
func leadsTo(base, listener string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host, port, err := net.SplitHostPort(listener)
	if err != nil || port != cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]) {
		return false
	}
	ours := []netip.Addr{netip.IPv6Unspecified()}
	if host != "" {
		ours = addressesOf(host)
	}
	return slices.ContainsFunc(addressesOf(u.Hostname()), func(to netip.Addr) bool {
		return slices.ContainsFunc(ours, func(own netip.Addr) bool {
			return to == own || own.IsUnspecified() && local(to) || to.IsUnspecified() && own.IsLoopback()
		})
	})
}

// addressesOf looks a host up, none if that fails. The host may be an address.
func addressesOf(host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}

// local reports whether a connection to an address stays on this machine.
func local(to netip.Addr) bool {
	if to.IsLoopback() || to.IsUnspecified() {
		return true
	}
	addresses, _ := net.InterfaceAddrs() // without them, only those above are known
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == to
	})
}
