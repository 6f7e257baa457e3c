package app

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/served"
)

// counted counts the requests that a server gets, or that a transport sends. The transport answers them itself.
type counted struct{ requests atomic.Int64 }

func (c *counted) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.requests.Add(1)
	w.WriteHeader(http.StatusTeapot)
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody, Request: r}, nil
}

// get sends a request by a transport.
func get(t *testing.T, through http.RoundTripper, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

// TestCallsToTeamsAddressesAreConfined: every call to an address in a team's file obeys tenants_hosts, on connections that are not the operator's.
// Calls that the same team causes to the operator's addresses do not.
func TestCallsToTeamsAddressesAreConfined(t *testing.T) {
	named := &counted{}
	server := httptest.NewServer(named)
	t.Cleanup(server.Close)
	custom, own := catalogue.Default(catalogue.TypeCustom), catalogue.Default(catalogue.TypeLLM)
	custom.URL, custom.MaxSize, custom.MinTokens = server.URL, 20, 0
	own.MaxSize, own.MinTokens = 20, 0
	condensing := func(t *testing.T, out *calls, cfg *config.Config) error {
		in := input(40)
		tenant, err := buildTenant(cfg, out, cfg.Tenants[0])
		if err != nil {
			t.Fatal(err)
		}
		in.Upstream = condense.Endpoint{BaseURL: tenant.Upstream.BaseURL.String(), APIKey: "client-key"}
		_, err = tenant.Condenser.Condense(in).Job.Run(t.Context())
		return err
	}
	finding := func(t *testing.T, out *calls, cfg *config.Config) error {
		conn, err := out.routes(cfg)["team"].Sink.Open(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Send(t.Context(), &findings.Message{ID: "m"})
	}
	for name, c := range map[string]struct {
		team config.Tenant
		call func(t *testing.T, out *calls, cfg *config.Config) error
	}{
		"upstream": {config.Tenant{Upstream: config.Upstream{BaseURL: server.URL}}, func(t *testing.T, out *calls, cfg *config.Config) error {
			tenants, err := buildTenants(cfg, out)
			if err != nil {
				t.Fatal(err)
			}
			return get(t, tenants[0].Upstream.Transport, server.URL+"/models")
		}},
		"window": {config.Tenant{Upstream: config.Upstream{BaseURL: server.URL}}, func(t *testing.T, out *calls, cfg *config.Config) error {
			out.useForWindows(cfg)
			return get(t, out.windowTransport("team"), server.URL+"/models")
		}},
		"summary at its upstream": {config.Tenant{Upstream: config.Upstream{BaseURL: server.URL}, Condenser: &own}, condensing},
		"custom condenser":        {config.Tenant{Condenser: &custom}, condensing},
		"webhook":                 {config.Tenant{Memory: config.Memory{Webhook: config.Webhook{URL: config.Secret(server.URL)}}}, finding},
		"mcp":                     {config.Tenant{Memory: config.Memory{MCP: config.MCP{URL: server.URL}}}, finding},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hosts := range [][]string{nil, {"other.example", "10.0.0.0/8"}, {"127.0.0.1"}} {
				operators := &counted{}
				out := unshared(t, operators)
				cfg := config.Default()
				cfg.TenantsHosts = hosts
				cfg.LLMs["cheap"] = config.LLM{Model: "m", BaseURL: "http://127.0.0.1:1/v1"}
				team := c.team
				team.Name, team.Confined = "team", true
				cfg.Tenants = []config.Tenant{team}
				out.confine(cfg)
				before := named.requests.Load()
				err := c.call(t, out, cfg) // the server refuses each call that reaches it
				reached := named.requests.Load() > before
				_, refused := errors.AsType[*dial.RefusedError](err)
				allowed := slices.Contains(hosts, "127.0.0.1")
				if reached != allowed || refused == allowed || operators.requests.Load() != 0 {
					t.Errorf("under %q: reached %t, %d by the operator's connections, %v", hosts, reached, operators.requests.Load(), err)
				}
				for _, a := range cfg.Addresses() {
					if err := get(t, out.transportOf(cfg, team), a.URL+"/x"); err != nil {
						t.Errorf("the operator's %s: %v", a.Key, err)
					}
				}
				if n := operators.requests.Load(); n != int64(len(cfg.Addresses())) {
					t.Errorf("%d calls to the operator's addresses", n)
				}
				out.confined.closeAll()
			}
		})
	}
}

// TestTeamsAddressAtAnOperatorsHost: if a team's address is at the host of an operator's address, requests to that host are confined, for that
// team only.
func TestTeamsAddressAtAnOperatorsHost(t *testing.T) {
	operators := &counted{}
	out, cfg := unshared(t, operators), config.Default()
	cfg.Upstream.BaseURL, cfg.TenantsHosts = "http://localhost:1/v1", []string{"*.example"}
	team := config.Tenant{Name: "team", Confined: true, Upstream: config.Upstream{BaseURL: "http://LOCALHOST:1/admin"}}
	other := config.Tenant{Name: "other", Confined: true}
	cfg.Tenants = []config.Tenant{team, other}
	out.confine(cfg)
	if err := get(t, out.transportOf(cfg, team), "http://localhost:1/admin/x"); err == nil || operators.requests.Load() != 0 {
		t.Errorf("the team's upstream: %v", err)
	}
	if err := get(t, out.transportOf(cfg, other), "http://localhost:1/v1/x"); err != nil || operators.requests.Load() != 1 {
		t.Errorf("the operator's upstream: %v", err)
	}
	out.useForWindows(cfg)
	for tenant, want := range map[string]int64{"team": 0, "gone": 0, "other": 1} {
		before := operators.requests.Load()
		windows := served.New(out.windowTransport)
		windows.Ask(tenant, "http://localhost:1/v1", "", "m")
		windows.Close() // waits
		if n := operators.requests.Load() - before; n != want {
			t.Errorf("%s: %d inquiries by the operator's connections, want %d", tenant, n, want)
		}
	}
}

// connections counts the connections to a server.
type connections struct {
	mu             sync.Mutex
	open, accepted int
	changed        chan struct{} // has an element after each change
}

func (c *connections) note(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
		c.accepted++
	case http.StateClosed, http.StateHijacked:
		c.open--
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *connections) counts() (open, accepted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.accepted
}

// awaitNone waits until no connection is open, for less time than an idle one is kept.
func (c *connections) awaitNone(t *testing.T, after string) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		open, _ := c.counts()
		if open == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-timeout:
			t.Fatalf("%d connections are open after %s", open, after)
		}
	}
}

// TestChangedListEndsConnections: once a changed list is in force, the connections that the old one permitted end, including those of running
// requests. A reload that fails ends none, and a stop ends those in use.
func TestChangedListEndsConnections(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var holds atomic.Bool // the answer is held back
	conns := &connections{changed: make(chan struct{}, 1)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if holds.Load() {
			close(begun)
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	server.Config.ConnState = conns.note
	server.Start()
	t.Cleanup(server.Close)
	r := run(t, zap.NewNop(), func(cfg *config.Config) {
		cfg.Admin.Token = "token"
		cfg.TenantsHosts = []string{"127.0.0.1"}
		cfg.Tenants = []config.Tenant{{
			Name: "team", Confined: true, APIKeys: []config.APIKey{{Env: "KEY", Value: "key"}}, Upstream: config.Upstream{BaseURL: server.URL + "/v1"},
		}}
	})
	ask := func() { r.talk(1, "Authorization", "Bearer key") }
	under := func(hosts ...string) *config.Config {
		cfg := *r.config
		cfg.TenantsHosts = append(hosts, "127.0.0.1")
		return &cfg
	}
	failToReload := func(cfg *config.Config) {
		t.Helper()
		cfg.Condenser = config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{{Type: "sliding"}}}
		if err := r.Reload(cfg); err == nil {
			t.Fatal("a condenser of an unknown type was taken")
		}
	}
	ask()
	failToReload(under("a.example"))
	ask()
	if open, accepted := conns.counts(); open != accepted {
		t.Errorf("a reload that failed ended connections: %d of %d are open", open, accepted)
	}
	holds.Store(true)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		ask()
	}()
	<-begun
	holds.Store(false)
	if err := r.Reload(under("b.example")); err != nil {
		t.Fatal(err)
	}
	close(release)
	<-answered
	conns.awaitNone(t, "a reload")
	ask()
	confined := r.calls.confined.load()
	if err := r.Reload(under("b.example")); err != nil || r.calls.confined.load() != confined {
		t.Errorf("the same list begins new connections (%v)", err)
	}
	failToReload(under("c.example"))
	ask()
	shut(t, r.App)
	conns.awaitNone(t, "a stop")
}
