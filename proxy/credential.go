package proxy

import "crypto/sha256"

// credential is a hash of a client's keys, of the tenant it came to and of where that forwards to.
type credential [sha256.Size]byte

func credentialOf(t *Tenant, keys string) credential {
	h := sha256.New()
	for _, part := range [...]string{t.Name, t.Upstream.BaseURL.String(), keys} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return credential(h.Sum(nil))
}

// mostAccepted is how many credentials are remembered, the newest.
const mostAccepted = 16 << 10

// client is whose bytes the request holds.
func (r *request) client() client {
	if !r.tenant.Anonymous {
		return client{tenant: r.tenant.Name}
	}
	return client{r.tenant.Name, r.asked.credential, !r.server.accepted.Contains(r.asked.credential)}
}

// trusted reports whether the request's client may spend the operator's money: an authenticated one, or one that upstream has
// accepted. A condensation may ask after the request is over.
func (r *request) trusted() func() bool {
	if !r.tenant.Anonymous {
		return func() bool { return true }
	}
	known, c := r.server.accepted, r.asked.credential
	return func() bool { return known.Contains(c) }
}

// noteAccepted remembers the client's credential if upstream has accepted it: if it has answered a conversation. Other paths, and
// errors, may be answered before a key is looked at.
func (r *request) noteAccepted(status int) {
	if r.tenant.Anonymous && r.asked.dialect != nil && !r.asked.counts && status/100 == 2 {
		r.server.accepted.Add(r.asked.credential, struct{}{})
	}
}
