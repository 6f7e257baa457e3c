package proxy

import (
	"net/url"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// TestTrust: the operator's money may be spent on clients that are authenticated, and on those whose credential upstream has accepted for a
// conversation. Other paths may be answered before upstream checks it.
func TestTrust(t *testing.T) {
	for name, c := range map[string]struct {
		known        bool // an authenticated tenant
		conversation bool
		counts       bool
		status       int
		before, then bool // trusted before and after the answer
	}{
		"an authenticated client": {known: true, conversation: true, status: 401, before: true, then: true},
		"an answer":               {conversation: true, status: 200, then: true},
		"the last of its class":   {conversation: true, status: 299, then: true},
		"a redirection":           {conversation: true, status: 300},
		"another class":           {conversation: true, status: 199},
		"a wrong key":             {conversation: true, status: 401},
		"a body that is refused":  {conversation: true, status: 400},
		"a count of tokens":       {conversation: true, counts: true, status: 200},
		"another path":            {status: 200},
	} {
		accepted := lru.New[credential, struct{}](2)
		from := func(key byte) *request {
			r := &request{}
			r.server, r.tenant = &Server{accepted: accepted}, &Tenant{Tenant: engine.Tenant{Anonymous: !c.known}}
			r.credential, r.params.counts = credential{key}, c.counts
			if c.conversation {
				r.params.dialect = chat.New(chat.Options{})
			}
			return r
		}
		r := from(1)
		trusted := r.trusted() // it is asked again later, when a condensation calls
		if got := trusted(); got != c.before {
			t.Errorf("%s: trusted before: %t", name, got)
		}
		r.noteAccepted(c.status)
		if got := trusted(); got != c.then {
			t.Errorf("%s: trusted afterwards: %t", name, got)
		}
		if got := from(2).trusted()(); got != c.known {
			t.Errorf("%s: another credential is trusted: %t", name, got)
		}
	}
}

// TestCredentials: a client is the same only with the same keys, at the same tenant and upstream.
func TestCredentials(t *testing.T) {
	tenant := func(name, upstream string) *Tenant {
		u, err := url.Parse(upstream)
		if err != nil {
			t.Fatal(err)
		}
		return &Tenant{Tenant: engine.Tenant{Name: name}, Upstream: UpstreamConfig{BaseURL: u}}
	}
	credentialAt := func(t *Tenant, keys string) credential { return credentialOf(t, &t.Upstream, keys) }
	seen := map[credential]string{credentialAt(tenant("a", "http://one/v1"), "key"): "the first"}
	for name, c := range map[string]credential{
		"another tenant":         credentialAt(tenant("b", "http://one/v1"), "key"),
		"another upstream":       credentialAt(tenant("a", "http://two/v1"), "key"),
		"another key":            credentialAt(tenant("a", "http://one/v1"), "keys"),
		"the same, cut anywhere": credentialAt(tenant(`a" "http://one/v1`, "key"), ""),
	} {
		if same, ok := seen[c]; ok {
			t.Errorf("%s is taken for %s", name, same)
		}
		seen[c] = name
	}
	if seen[credentialAt(tenant("a", "http://one/v1"), "key")] != "the first" {
		t.Error("the same client is another")
	}
}
