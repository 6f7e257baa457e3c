package hosts

import "net/netip"

// plain returns an address without its zone. For an IPv6 address that represents an IPv4 address (mapped, or translated by NAT64), it returns
// the IPv4 address.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Plain returns an address and port in the form in which two can be compared: see LinkLocal.
func Plain(at netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(plain(at.Addr()), at.Port()) }

// LinkLocal reports whether an address is link-local, or another address at which clouds serve the credentials of a machine. An IPv4 address
// may be mapped to IPv6.
func LinkLocal(a netip.Addr) bool {
	a = plain(a)
	return a.IsLinkLocalUnicast() || servesCredentials(a)
}

// servesCredentials reports whether clouds serve the credentials of a machine at a plain address that is not link-local.
func servesCredentials(a netip.Addr) bool {
	for _, known := range [...]string{
		"fd00:ec2::254", "fd00:ec2::23", // AWS: of the instance, and of pods in EKS
		"168.63.129.16",   // Azure's WireServer
		"fd20:ce::254",    // Google
		"100.100.100.200", // Alibaba
		"192.0.0.192",     // Oracle, older instances
		"fd00:42::42",     // Scaleway
	} {
		if netip.MustParseAddr(known) == a {
			return true
		}
	}
	return false
}

// Public reports whether an address belongs to the public internet. It does not if it is an address of this machine, private, shared
// (RFC 6598), reserved, or that of a cloud's service for its machines.
func Public(a netip.Addr) bool {
	a = plain(a)
	for _, reserved := range [...]string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10", // translated, tunnelled, or formerly local
	} {
		if netip.MustParsePrefix(reserved).Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !servesCredentials(a)
}
