package app

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
)

// lookupTimeout bounds the look-up of a host name that may be this machine's.
const lookupTimeout = 2 * time.Second

// checkLoops returns a problem for each base_url that leads to one of the listeners (host:port), because requests would be forwarded to this
// proxy again. It looks up a host name only if the port is a listener's. A name that cannot be looked up is not a problem, since proxy.Marks
// stops loops that are not found here.
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
	upstream := func(section string, up config.Upstream) {
		for _, a := range (config.Tenant{Upstream: up}).Addresses(section) {
			check(a.Key, a.URL)
		}
	}
	upstream("", cfg.Upstream)
	for _, t := range cfg.Tenants {
		if !t.Confined { // dialling refuses the address, and this file must not make the whole configuration invalid
			upstream(keyOf(cfg, t), t.Upstream)
		}
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
	name, to := hosts.Of(u)
	host, port, err := net.SplitHostPort(listener)
	if err != nil || port != strconv.Itoa(int(to)) {
		return false
	}
	ours := []netip.Addr{netip.IPv6Unspecified()}
	if host != "" {
		ours = addressesOf(host)
	}
	var own dial.Listeners
	addrs := make([]net.Addr, len(ours))
	for i, a := range ours {
		addrs[i] = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, to))
	}
	own.Set(addrs...)
	return slices.ContainsFunc(addressesOf(name), func(a netip.Addr) bool { return own.Have(netip.AddrPortFrom(a, to)) })
}

// addressesOf returns the addresses of a host name or address, none if the look-up fails.
func addressesOf(host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}
