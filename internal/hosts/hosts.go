// Package hosts matches hosts and IP addresses against a list that an operator writes, and classifies addresses. It resolves no names.
package hosts

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// List is a list of allowed hosts. The zero value allows none. A List is read-only and may be shared between goroutines.
type List []Entry

// Entry is one entry of a List: a host name, all names below a domain, an IP address or a range of addresses, at one port or at any.
type Entry struct {
	name   string       // in lower case; a leading dot stands for all names below the domain
	within netip.Prefix // valid if the entry is an address or a range
	port   uint16       // 0: any
}

// NewList returns the list of the valid entries among texts (see Parse). It ignores invalid ones.
func NewList(texts []string) (l List) {
	for _, text := range texts {
		if e, ok := Parse(text); ok {
			l = append(l, e)
		}
	}
	return l
}

// Parse reads an entry: llm.example.com, *.example.com, 10.1.2.3, fd12::1, 10.0.0.0/8 or fd12::/16. A port after a colon restricts the entry to
// that port. An IPv6 address or range with a port is in brackets, as in [fd12::/16]:8000. Parse returns false if the text is not an entry.
func Parse(text string) (e Entry, ok bool) {
	host, port := text, ""
	inner, rest, bracketed := strings.Cut(strings.TrimPrefix(text, "["), "]")
	switch {
	case strings.HasPrefix(text, "["):
		if !bracketed || rest != "" && rest[0] != ':' {
			return e, false
		}
		host, port = inner, rest
	case strings.Count(text, ":") == 1:
		host, port = text[:strings.IndexByte(text, ':')], text[strings.IndexByte(text, ':'):]
	}
	if port != "" {
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 {
			return e, false
		}
		e.port = uint16(n)
	}
	if e.within, ok = parseRange(host); ok {
		return e, true
	}
	domain, below := strings.CutPrefix(host, "*.")
	domain = canonical(domain)
	e.name = domain
	if below {
		e.name = "." + domain
	}
	return e, isName(domain) && !strings.HasPrefix(text, "[")
}

// parseRange reads an address or a range of addresses.
func parseRange(text string) (r netip.Prefix, ok bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	r, err := netip.ParsePrefix(text)
	return r.Masked(), err == nil && !r.Addr().Is4In6()
}

// isName reports whether text is a host name. A text that ends in a number is not: it is a mistyped address, which some resolvers accept as an
// address.
func isName(text string) bool {
	labels := strings.Split(text, ".")
	for _, label := range labels {
		odd := strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_")
		if label == "" || len(label) > 63 || odd != "" {
			return false
		}
	}
	return len(text) <= 253 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// Of returns the host of an HTTP URL and its port, which may be the default of the scheme. The port is 0 if it is not valid.
func Of(u *url.URL) (host string, port uint16) {
	text := u.Port()
	switch {
	case text == "" && u.Scheme == "http":
		text = "80"
	case text == "":
		text = "443"
	}
	n, _ := strconv.ParseUint(text, 10, 16)
	return u.Hostname(), uint16(n)
}

// Allows reports whether the list allows a host as it is written in a URL. An address must be in the list, or in a range of the list; a name
// must match an entry.
func (l List) Allows(host string, port uint16) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return l.hasAddress(plain(a), port)
	}
	name := canonical(host)
	return l.any(port, func(e Entry) bool {
		return e.name != "" && (e.name == name || e.name[0] == '.' && len(name) > len(e.name) && strings.HasSuffix(name, e.name))
	})
}

// AllowsAt reports whether the list allows a connection to a host at an address to which the host resolved. If the address is not public, the
// list must have the address, a range of it, or the host's exact name. Otherwise the owner of an allowed domain could make a name below it
// resolve to machines in the operator's network.
func (l List) AllowsAt(host string, at netip.AddrPort) bool {
	if !l.Allows(host, at.Port()) {
		return false
	}
	name := canonical(host)
	return Public(at.Addr()) || l.hasAddress(plain(at.Addr()), at.Port()) ||
		l.any(at.Port(), func(e Entry) bool { return e.name != "" && e.name == name })
}

func (l List) hasAddress(a netip.Addr, port uint16) bool {
	return l.any(port, func(e Entry) bool { return e.within.Contains(a) })
}

func (l List) any(port uint16, matches func(Entry) bool) bool {
	for _, e := range l {
		if (e.port == 0 || e.port == port) && matches(e) {
			return true
		}
	}
	return false
}

func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
