package admin

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ownHeader is required of a request that changes something, unless its content type is JSON.
const ownHeader = "X-Dewpoint-Admin"

// guard rejects requests without the token. If no token is configured, it rejects requests that a page of another site made a browser on this
// machine send.
//
// Such a page can make a browser send requests here, but it cannot read the responses, since no CORS header is ever sent. It cannot send a
// request that changes something either, since that takes a header that no form can set. If the page's own host name is made to resolve to
// this machine (DNS rebinding), the browser treats its requests as same-origin; the guard recognises them by that name in the Host header.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		i, f := a.check(r)
		if f != nil {
			if f.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refuse(w, f)
			return
		}
		next.ServeHTTP(w, withIdentity(r, i))
	})
}

// setSecurityHeaders keeps a response from being stored, sniffed, framed or executed.
func setSecurityHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// check returns who sent a request of the API, or why it is refused.
func (a *api) check(r *http.Request) (*identity, *Fault) {
	if f := a.checkOrigin(r); f != nil {
		return nil, f
	}
	i := a.doors.identify(r)
	switch {
	case i == nil:
		return nil, fault(http.StatusUnauthorized, "token_required", "Send the admin token as 'Authorization: Bearer TOKEN'.")
	case !safe(r.Method) && !preflighted(r.Header):
		return nil, fault(http.StatusForbidden, "header_required",
			"A request that changes something needs the header 'Content-Type: application/json' or '%s: 1'.", ownHeader)
	}
	return i, nil
}

// checkOrigin rejects requests that a page of another site made a browser send.
func (a *api) checkOrigin(r *http.Request) *Fault {
	switch {
	case !a.doors.closed() && !a.allowedHost(r.Host):
		return fault(http.StatusMisdirectedRequest, "unknown_host",
			"Address the admin port as localhost or by a loopback address, add this host to admin.hosts, or set admin.token.")
	case crossOrigin(r):
		return fault(http.StatusForbidden, "cross_origin", "Requests from pages of other sites are refused.")
	}
	return nil
}

// allowedHost reports whether a Host header is a configured name or one that no foreign name server can resolve.
func (a *api) allowedHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	is := func(name string) bool { return strings.EqualFold(name, host) }
	return ip != nil && ip.IsLoopback() || is("localhost") || slices.ContainsFunc(a.o.Hosts, is)
}

// crossOrigin reports whether a browser marked the request as sent by a page of another origin. It is stricter than
// http.CrossOriginProtection, and applies to GET and HEAD as well.
func crossOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	u, err := url.Parse(origins[0])
	return err != nil || len(origins) > 1 || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// preflighted reports whether a request has a header that makes a browser send a CORS preflight, which is never granted.
func preflighted(h http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && mediaType == "application/json" || h.Get(ownHeader) != ""
}
