package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// keyOf returns the api_keys of a tenant.
func keyOf(key string) string {
	return fmt.Sprintf("api_keys: [{sha256: %x}]\n", sha256.Sum256([]byte(key)))
}

// teams is a proxy whose tenants come from files that teams write.
type teams struct {
	*process
	folder string
}

// newTeams starts a proxy with a team whose requests go to the operator's upstream. hosts are the hosts that the files of other teams may name.
func newTeams(t *testing.T, hosts string, env ...string) *teams {
	t.Helper()
	s, folder := newSetting(t, fakeupstream.Options{}), t.TempDir()
	writeFile(t, folder, "quiet.yaml", keyOf("key-quiet"))
	p := serveUnder(t, env, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", token: admin-token}
upstream: {base_url: %q}
store: %s
tenants_dir: %q
tenants_hosts: [%s]
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), folder, hosts)))
	return &teams{process: p, folder: folder}
}

// add writes the file of a further team, whose key is its name, and waits until the proxy serves it.
func (p *teams) add(name, settings string) {
	p.t.Helper()
	ok(p.t, os.WriteFile(filepath.Join(p.folder, "."+name), []byte(keyOf(name)+settings), 0o600))
	ok(p.t, os.Rename(filepath.Join(p.folder, "."+name), filepath.Join(p.folder, name+".yaml")))
	p.awaitLine(fmt.Sprintf(`"tenants_added":[%q]`, name))
}

// call sends a request with a tenant's key to a path below /v1, and follows no redirect.
func (p *process) call(method, path, key string) (status int, text string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url()+path, http.NoBody)
	ok(p.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultTransport.RoundTrip(req)
	ok(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(p.t, err)
	return resp.StatusCode, string(body)
}

// quietIsServed checks that a team with a valid file is not affected by the other teams' files.
func (p *teams) quietIsServed() {
	p.t.Helper()
	if _, status := ask(p.t, p.process, "key-quiet", 4); status != http.StatusOK {
		p.t.Errorf("the team with a good file gets %d", status)
	}
}

// TestTeamsFilesReachNoListener: a team's upstream may be neither the admin port nor the data port, even if the operator allows its host.
func TestTeamsFilesReachNoListener(t *testing.T) {
	t.Parallel()
	p := newTeams(t, "localhost, 127.0.0.0/8")
	_, admin, err := net.SplitHostPort(p.Admin)
	ok(t, err)
	_, data, err := net.SplitHostPort(p.Addr)
	ok(t, err)
	for name, base := range map[string]string{
		"by-name": "http://localhost:" + admin + "/api/v1", "by-address": "http://127.0.0.1:" + admin + "/api/v1",
		"mapped": "http://[::ffff:127.0.0.1]:" + admin + "/api/v1", "data-port": "http://localhost:" + data + "/v1",
	} {
		p.add(name, fmt.Sprintf("upstream: {base_url: %q}\n", base))
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			status, text := p.call(method, "/sessions", name)
			if status != http.StatusBadGateway || !strings.Contains(text, "one of Dewpoint's own listeners. Check upstream.base_url.") ||
				strings.Contains(text, "127.0.0.1") {
				t.Errorf("%s: %s is answered %d %s", name, method, status, text)
			}
		}
	}
	p.quietIsServed()
}

// TestTeamsFilesNameAllowedHosts: a file with an address at a host that the operator does not allow is refused and changes nothing. A name
// that resolves to an address of this machine is dialled only if the operator's list has exactly this name.
func TestTeamsFilesNameAllowedHosts(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/moved" {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "served")
	}))
	t.Cleanup(service.Close)
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	ok(t, err)
	p := newTeams(t, "localhost:"+port)
	p.add("allowed", fmt.Sprintf("upstream: {base_url: \"http://localhost:%s/v1\"}\n", port))
	if status, text := p.call(http.MethodGet, "/x", "allowed"); status != http.StatusOK || text != "served" {
		t.Errorf("a host of the list: %d %s", status, text)
	}
	if status, _ := p.call(http.MethodGet, "/moved", "allowed"); status != http.StatusTemporaryRedirect { // not followed, but relayed
		t.Errorf("a redirect: %d", status)
	}
	writeFile(t, p.folder, "other.yaml", keyOf("other")+fmt.Sprintf("upstream: {base_url: \"http://127.0.0.1:%s/v1\"}\n", port))
	p.awaitLine(`tenants_dir[\"other.yaml\"].upstream.base_url: names a host that teams may not use`)
	writeFile(t, p.folder, "other.yaml", keyOf("other")+"memory: {webhook: {url: \"http://169.254.169.254/latest\"}}\n")
	p.awaitLine(`tenants_dir[\"other.yaml\"].memory.webhook.url: is a link-local address`)
	if status, text := p.call(http.MethodGet, "/x", "other"); status != http.StatusServiceUnavailable || !strings.Contains(text, "tenant_refused") {
		t.Errorf("the refused file's key: %d %s", status, text)
	}
	p.quietIsServed()
}

// TestTeamsRequestsByAProxy: if the environment names an HTTP proxy, requests to the hosts that teams may use go through it, although its own
// address is not one of these hosts. A team cannot use the HTTP proxy itself as an address.
func TestTeamsRequestsByAProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "asked for "+r.URL.String())
	}))
	t.Cleanup(proxy.Close)
	p := newTeams(t, "llm.example", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	p.add("proxied", "upstream: {base_url: \"http://llm.example/v1\"}\n")
	if status, text := p.call(http.MethodGet, "/x", "proxied"); status != http.StatusOK || text != "asked for http://llm.example/v1/x" {
		t.Errorf("%d %s", status, text)
	}
	writeFile(t, p.folder, "other.yaml", keyOf("other")+fmt.Sprintf("upstream: {base_url: %q}\n", proxy.URL))
	p.awaitLine(`tenants_dir[\"other.yaml\"].upstream.base_url: names a host that teams may not use`)
	p.quietIsServed()
}

// TestTeamsFilesNeedAToken: without a token for the admin port, files of teams are accepted neither at start nor by a reload.
func TestTeamsFilesNeedAToken(t *testing.T) {
	t.Parallel()
	s, folder := newSetting(t, fakeupstream.Options{}), t.TempDir()
	writeFile(t, folder, "team.yaml", keyOf("key-team"))
	store := newStore(t)
	without := s.tenants(store, 100, fmt.Sprintf("tenants_dir: %q\n", folder))
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", without)
	if f := command(t, "check-config", file); f.Code != 2 || !strings.Contains(f.Err, "admin.token: is missing while teams write the files of tenants_dir") {
		t.Errorf("check-config: %d %s", f.Code, f.Err)
	}
	ok(t, os.WriteFile(file, []byte(s.tenants(store, 100, "")), 0o600))
	p := serve(t, "--config", file)
	ok(t, os.WriteFile(file, []byte(without), 0o600))
	p.awaitLine("admin.token: is missing while teams write the files of tenants_dir")
	ok(t, os.WriteFile(file, []byte(strings.Replace(without, `"127.0.0.1:0"}`, `"127.0.0.1:0", token: new}`, 1)), 0o600))
	p.awaitLine("admin.token: takes effect only at a restart")
	if _, status := ask(t, p, "key-team", 4); status != http.StatusUnauthorized {
		t.Errorf("the team's key: %d", status)
	}
	if _, status := ask(t, p, "key-one", 4); status != http.StatusOK {
		t.Errorf("a key of the configuration in force: %d", status)
	}
}

// TestOperatorsAddressesReachNoListener: a custom condenser, a webhook or an MCP server cannot be one of Dewpoint's own ports. Such a base_url
// is refused before it is dialled, see TestOwnAddressAsUpstream. Other addresses on loopback work, as in every other test.
func TestOperatorsAddressesReachNoListener(t *testing.T) {
	t.Parallel()
	const rule = ": refused: the address is one of Dewpoint's own listeners"
	for name, c := range map[string]struct {
		old, new string // in the configuration; ADMIN is the URL of the admin port
		check    func(t *testing.T, p *process)
	}{
		"webhook": {"memory: {}", "memory: {webhook: {url: ADMIN/api/v1/hook}}", func(t *testing.T, p *process) {
			condenseOnce(t, p, "one")
			p.awaitLine("call memory.webhook: dial tcp " + p.Admin + rule)
		}},
		"mcp": {"memory: {}", "memory: {mcp: {url: ADMIN/mcp}}", func(t *testing.T, p *process) {
			condenseOnce(t, p, "one")
			p.awaitLine("connect to memory.mcp: dial tcp " + p.Admin + rule)
		}},
		"custom condenser": {"{type: llm, llm_config: cheap", "{type: custom, url: ADMIN/api/v1/x", func(t *testing.T, p *process) {
			if o := askLong(t, p, "one"); o.status != http.StatusOK || o.Get("X-Dewpoint-Condense-Failed") != "unreachable" {
				t.Errorf("%d %v", o.status, o.Header)
			}
			p.awaitLine("condense custom: call summariser: unreachable: dial tcp " + p.Admin + rule)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := deciding(t)
			text := strings.Replace(s.remembering(embedded(newStore(t)), "{}"), fmt.Sprintf("%q", s.url), "UPSTREAM", 1)
			file := writeFile(t, t.TempDir(), "dewpoint.yaml", strings.Replace(text, "UPSTREAM", s.url, 1))
			p := serve(t, "--config", file)
			changed := strings.Replace(strings.Replace(text, c.old, c.new, 1), "ADMIN", "http://"+p.Admin, 1)
			ok(t, os.WriteFile(file, []byte(strings.Replace(changed, "UPSTREAM", s.url, 1)), 0o600))
			p.awaitLine(`"msg":"configuration reloaded"`)
			c.check(t, p)
		})
	}
}
