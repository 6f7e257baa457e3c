package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard keeps out who may not use the API: without the token, or, where there is none, by way of a browser on this
// machine that shows another site's page.
//
// A page can make a browser send requests here, but it cannot read answers, since no CORS header is ever sent, nor send
// any that changes something, since that takes a header which no form has. A page whose own name is made to point here
// (DNS rebinding) is same-origin for the browser, and is known by that name.
type guard struct {
	token [sha256.Size]byte
	asked bool // for the token
	hosts map[string]bool
	cross *http.CrossOriginProtection
}

// ownHeader is what a request that changes something carries, if it has no JSON content type.
const ownHeader = "X-Dewpoint-Admin"

func newGuard(token string, hosts []string) *guard {
	g := &guard{
		token: sha256.Sum256([]byte(token)), asked: token != "", hosts: map[string]bool{"localhost": true},
		cross: http.NewCrossOriginProtection(),
	}
	for _, host := range hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	return g
}

func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seal(w.Header())
		if f := g.check(r); f != nil {
			if f.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refuse(w, f)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// seal keeps an answer from being kept, sniffed, framed or run.
func seal(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

func (g *guard) check(r *http.Request) *Fault {
	switch {
	case !g.asked && !g.known(r.Host):
		return fault(http.StatusMisdirectedRequest, "unknown_host",
			"Address the admin port as localhost or by a loopback address, name this host in admin.hosts, or set admin.token.")
	case g.foreign(r):
		return fault(http.StatusForbidden, "cross_origin", "Requests of other sites' pages are not answered.")
	case g.asked && !g.knows(r.Header.Get("Authorization")):
		return fault(http.StatusUnauthorized, "token_required", "Send the admin token as 'Authorization: Bearer TOKEN'.")
	case !safe(r.Method) && !deliberate(r.Header):
		return fault(http.StatusForbidden, "header_required",
			"A request that changes something needs the header 'Content-Type: application/json' or '%s: 1'.", ownHeader)
	}
	return nil
}

// known reports whether a Host header is a name of this machine that no foreign name server can give out.
func (g *guard) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || g.hosts[strings.ToLower(host)]
}

// foreign reports whether a browser says that a page of another origin is behind the request. Unlike
// CrossOriginProtection it asks that of requests that only read, too.
func (g *guard) foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		u, err := url.Parse(origins[0])
		if err != nil || len(origins) > 1 || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return g.cross.Check(r) != nil
}

// knows compares the token in constant time.
func (g *guard) knows(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(got[:], g.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// deliberate reports whether a request has what makes a browser ask first, in vain, before it sends it for a page.
func deliberate(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/json" || h.Get(ownHeader) != ""
}
