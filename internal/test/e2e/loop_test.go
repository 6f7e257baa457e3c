package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// relay forwards to a server that is named later: to the proxy itself, which does not recognise the address as its own.
type relay struct {
	*httptest.Server
	to     atomic.Pointer[url.URL]
	posted atomic.Int32 // requests other than GET, which Dewpoint also sends by itself
}

// mostRelayed bounds what a relay forwards, so that an endless loop ends.
const mostRelayed = 50

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{}
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(r.to.Load()) }}
	var all atomic.Int32
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			r.posted.Add(1)
		}
		if all.Add(1) > mostRelayed {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// leadTo makes the relay forward to a server at host:port.
func (r *relay) leadTo(addr string) { r.to.Store(&url.URL{Scheme: "http", Host: addr}) }

// url returns the relay's base URL.
func (r *relay) url() string { return r.URL + "/v1" }

// proxyTo starts a proxy with an upstream's base URL, a store section and more sections.
func proxyTo(t *testing.T, upstream, store, more string, env ...string) *process {
	t.Helper()
	return serveUnder(t, env, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: noop}
shutdown: {delay: 0s}
%s`, upstream, store, more)))
}

// say sends a short message as a client with a key, and returns the answer's status and body.
func say(t *testing.T, p *process, path, key string, header http.Header) (int, string) {
	t.Helper()
	text := `{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}`
	if path == "/responses" {
		text = `{"model":"gpt-4o","input":"Hi."}`
	}
	req, a := post(t, p, []byte(text))
	req.URL.Path = "/v1" + path
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(t, err)
	return resp.StatusCode, string(body)
}

// TestALoopIsRefused: if an upstream's address leads back to the proxy, each request is forwarded only once. The client gets an error that
// explains this, and other tenants are served.
func TestALoopIsRefused(t *testing.T) {
	t.Parallel()
	s, back := newSetting(t, fakeupstream.Options{}), newRelay(t)
	p := proxyTo(t, s.url, embedded(newStore(t)), fmt.Sprintf(`
tenants:
  - {name: loop, api_keys: [{sha256: %x}], upstream: {base_url: %q, api_key: sk-upstream}}
  - {name: other, api_keys: [{sha256: %x}]}
`, sha256.Sum256([]byte("sk-loop")), back.url(), sha256.Sum256([]byte("sk-other"))))
	back.leadTo(p.Addr)
	for path, shape := range map[string]string{
		"/chat/completions": `"code":"request_loop"`, "/responses": `"code":"request_loop"`, "/messages": `{"type":"error"`, "/embeddings": `"code":"request_loop"`,
	} {
		before := back.posted.Load()
		status, body := say(t, p, path, "sk-loop", nil)
		if status != http.StatusLoopDetected || !strings.Contains(body, shape) || !strings.Contains(body, "upstream.base_url") {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if n := back.posted.Load() - before; n != 1 {
			t.Errorf("%s: upstream got %d requests", path, n)
		}
	}
	if status, body := say(t, p, "/chat/completions", "sk-other", nil); status != http.StatusOK {
		t.Errorf("another tenant: %d %s", status, body)
	}
}

// TestProxiesInARowPass: requests through a proxy of another deployment are not a loop, and are forwarded. A loop through both is refused by the
// first proxy that sees a request again, and so is a chain of more proxies than anyone has.
func TestProxiesInARowPass(t *testing.T) {
	t.Parallel()
	s, back := newSetting(t, fakeupstream.Options{}), newRelay(t)
	outer := proxyTo(t, s.url, embedded(newStore(t)), "")
	inner := proxyTo(t, outer.url(), embedded(newStore(t)), "")
	if status, body := say(t, inner, "/chat/completions", "sk-a", nil); status != http.StatusOK {
		t.Errorf("in a row: %d %s", status, body)
	}
	foreign := func(marks int) http.Header {
		return http.Header{"X-Dewpoint-Via": {strings.Repeat("a.b, ", marks-1) + "a.b"}}
	}
	if status, body := say(t, outer, "/chat/completions", "sk-a", foreign(8)); status != http.StatusOK {
		t.Errorf("8 marks of others: %d %s", status, body)
	}
	if status, body := say(t, inner, "/chat/completions", "sk-a", foreign(8)); status != http.StatusLoopDetected {
		t.Errorf("9 proxies: %d %s", status, body)
	}
	first := proxyTo(t, back.url(), embedded(newStore(t)), "")
	second := proxyTo(t, first.url(), embedded(newStore(t)), "")
	back.leadTo(second.Addr)
	if status, body := say(t, first, "/chat/completions", "sk-a", nil); status != http.StatusLoopDetected {
		t.Errorf("a loop of two: %d %s", status, body)
	}
	if n := back.posted.Load(); n != 1 {
		t.Errorf("the loop of two was passed %d times", n)
	}
}

// TestReplicasRecogniseALoop: replicas recognise each other's requests, by the secret in the store that they share or by a configured one.
func TestReplicasRecogniseALoop(t *testing.T) {
	t.Parallel()
	redis := inRedis(sessiontest.StartRedis(t).Addr)
	secret := func() string {
		return fmt.Sprintf("{type: embedded, path: %q, timeout: %s, secret: the-same-for-both-replicas}", newStore(t), patience)
	}
	for name, stores := range map[string][2]string{"one Redis": {redis, redis}, "one secret": {secret(), secret()}} {
		back := newRelay(t)
		first, second := proxyTo(t, back.url(), stores[0], ""), proxyTo(t, back.url(), stores[1], "")
		back.leadTo(second.Addr)
		for _, p := range []*process{second, first} { // both know the secret afterwards
			before := back.posted.Load()
			status, body := say(t, p, "/chat/completions", "sk-a", nil)
			if n := back.posted.Load() - before; status != http.StatusLoopDetected || n != 1 {
				t.Errorf("%s: %d %s after %d requests", name, status, body, n)
			}
		}
	}
}

// TestOwnCallsAreMarked: if a summariser's base URL leads back to the proxy, its calls are refused, and the request that was to be condensed is
// served.
func TestOwnCallsAreMarked(t *testing.T) {
	t.Parallel()
	s, back := newSetting(t, fakeupstream.Options{}), newRelay(t)
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {back: {model: %s, base_url: %q}}
condenser: {type: llm, llm_config: back, max_size: 10, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
`, s.url, embedded(newStore(t)), judge.Summariser, back.url())))
	back.leadTo(p.Addr)
	a := send(t, p, body(demo.Sample().Messages[:12]))
	ok(t, a.finish())
	if n := s.Upstream.SummariserCalls(); n > 0 || back.posted.Load() == 0 {
		t.Errorf("upstream got %d summary calls by the proxy, which got %d", n, back.posted.Load())
	}
}

// TestOwnAddressAsUpstream: a start with one of our own listeners as an upstream is refused, and so is a reload.
func TestOwnAddressAsUpstream(t *testing.T) {
	t.Parallel()
	check := func(text string) finished {
		return command(t, "check-config", writeFile(t, t.TempDir(), "dewpoint.yaml", text))
	}
	for text, want := range map[string]string{
		`{upstream: {base_url: "http://localhost:8080/v1"}}`:                                                                               "upstream.base_url: leads back",
		`{listen: "0.0.0.0:80", upstream: {base_url: "http://127.0.0.1/v1"}}`:                                                              "upstream.base_url: leads back",
		`{listen: ":8123", upstream: {base_url: "http://[::1]:8123/v1"}}`:                                                                  "upstream.base_url: leads back",
		`{upstream: {base_url: "http://0.0.0.0:8080"}}`:                                                                                    "upstream.base_url: leads back",
		`{llms: {cheap: {model: m, base_url: "http://127.0.0.1:9090/v1", api_key: k}}}`:                                                    "llms.cheap.base_url: leads back",
		`{tenants: [{name: a, api_keys: [{sha256: ` + strings.Repeat("ab", 32) + `}], upstream: {base_url: "http://127.0.0.1:8080/v1"}}]}`: "tenants[0].upstream.base_url: leads back",
	} {
		check(text).wants(t, 2, nil, []string{want})
	}
	for _, text := range []string{
		`{upstream: {base_url: "http://127.0.0.1:8081/v1"}}`, `{upstream: {base_url: "http://127.0.0.2:8080/v1"}}`,
		`{listen: "0.0.0.0:8080", upstream: {base_url: "http://192.0.2.1:8080/v1"}}`, `{upstream: {base_url: "http://absent.invalid:8080/v1"}}`,
	} {
		check(text).wants(t, 0, []string{": valid"}, nil)
	}
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", `{listen: "127.0.0.1:0", admin: {listen: "127.0.0.1:0"}, store: {path: "`+newStore(t)+`"}}`)
	p := serve(t, "--config", file)
	ok(t, os.WriteFile(file, []byte(`{listen: "127.0.0.1:0", admin: {listen: "127.0.0.1:0"}, upstream: {base_url: "`+p.url()+`"}}`), 0o600))
	p.await("configuration not reloaded: the last good one stays")
	if !strings.Contains(p.log.String(), "upstream.base_url: leads back") {
		t.Error("the log does not name the key")
	}
	command(t, "--upstream", "http://127.0.0.1:8080/v1").wants(t, 2, nil, []string{"upstream.base_url: leads back", "--upstream"})
}
