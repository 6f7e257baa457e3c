package dial

import (
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
)

// Listeners are the addresses at which this process listens. The zero value has none. Safe for concurrent use.
type Listeners struct {
	all atomic.Pointer[[]netip.AddrPort]
}

// Set replaces the addresses. It ignores those that are not TCP addresses.
func (l *Listeners) Set(addrs ...net.Addr) {
	var all []netip.AddrPort
	for _, a := range addrs {
		if tcp, ok := a.(*net.TCPAddr); ok {
			all = append(all, hosts.Plain(tcp.AddrPort()))
		}
	}
	l.all.Store(&all)
}

// Have reports whether a connection to an address would reach one of the listeners.
func (l *Listeners) Have(to netip.AddrPort) bool {
	if l == nil || l.all.Load() == nil {
		return false
	}
	to = hosts.Plain(to)
	for _, own := range *l.all.Load() {
		if own.Port() == to.Port() && (own.Addr() == to.Addr() || own.Addr().IsUnspecified() && local(to.Addr()) ||
			to.Addr().IsUnspecified() && own.Addr().IsLoopback()) { // a connection to the unspecified address goes to loopback
			return true
		}
	}
	return false
}

// local reports whether an address is one of this machine's. If that cannot be found out, it reports true.
func local(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	interfaces, err := net.InterfaceAddrs()
	for _, i := range interfaces {
		if at, ok := i.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(at.IP); ok && own.Unmap() == a {
				return true
			}
		}
	}
	return err != nil
}
