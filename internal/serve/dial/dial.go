// Package dial guards the connections that Dewpoint opens to addresses in its configuration. It checks the IP address that is dialled, after
// the name was resolved, so that neither a redirect nor a name that later resolves to another address can evade the check.
package dial

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
)

const (
	timeout   = 10 * time.Second // to connect
	keepAlive = 30 * time.Second // between probes of an idle connection
)

// Guard refuses connections to this process itself and to link-local addresses. The zero value refuses only the latter. Safe for concurrent use.
type Guard struct {
	Own *Listeners // nil: none

	// Only lists the hosts that may be connected to; nil allows every host. With a list, a connection to an address that is not public is
	// allowed only if the list names the address or the exact host (see hosts.List.AllowsAt), and no HTTP proxy is used.
	Only *hosts.List
}

// RefusedError says that a rule forbids a connection.
type RefusedError struct{ Rule string }

func (e *RefusedError) Error() string { return "refused: " + e.Rule }

// The rules.
const (
	ruleOwn       = "the address is one of Dewpoint's own listeners"
	ruleLinkLocal = "the address is link-local or another one where clouds serve credentials"
	ruleHost      = "tenants_hosts does not allow the host"
	rulePrivate   = "the address is not public, and tenants_hosts names neither it nor exactly this host"
)

// DialContext is for http.Transport. The error may wrap a *RefusedError.
func (g Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err // not wrapped: it is net.Dialer's error
	}
	port, _ := strconv.ParseUint(portText, 10, 16)
	if g.Only != nil && !g.Only.Allows(host, uint16(port)) { // its name is not even resolved
		return nil, &RefusedError{ruleHost}
	}
	d := net.Dialer{Timeout: timeout, KeepAlive: keepAlive, Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err // cannot happen: it is an IP address
		}
		return g.check(host, at)
	}}
	return d.DialContext(ctx, network, address)
}

// check returns a *RefusedError unless the host may be connected to at an address.
func (g Guard) check(host string, at netip.AddrPort) error {
	switch {
	case hosts.LinkLocal(at.Addr()):
		return &RefusedError{ruleLinkLocal}
	case g.Own.Have(at):
		return &RefusedError{ruleOwn}
	case g.Only != nil && !g.Only.AllowsAt(host, at):
		return &RefusedError{rulePrivate}
	}
	return nil
}

// Proxy is for http.Transport. It returns the proxy that the environment names for a request, or nil. Because a proxy resolves names itself,
// the request's destination can be checked only if it is an IP address. A guard with Only uses no proxy.
func (g Guard) Proxy(r *http.Request) (*url.URL, error) {
	if g.Only != nil {
		return nil, nil
	}
	via, err := http.ProxyFromEnvironment(r)
	if via == nil || err != nil {
		return nil, err // not wrapped: it is net/http's error
	}
	host, port := hosts.Of(r.URL)
	if a, err := netip.ParseAddr(host); err == nil {
		if err := g.check(host, netip.AddrPortFrom(a, port)); err != nil {
			return nil, err
		}
	}
	return via, nil
}

// Permits returns a *RefusedError unless Only allows the host of a URL by its name. It is for requests that a proxy forwards.
func (g Guard) Permits(u *url.URL) error {
	if host, port := hosts.Of(u); g.Only != nil && !g.Only.Allows(host, port) {
		return &RefusedError{ruleHost}
	}
	return nil
}
