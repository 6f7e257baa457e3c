package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// payers are configurations by who pays for summaries.
var payers = map[string]struct {
	text     string
	operator bool // the operator pays for summaries
	same     bool // the one who pays for the requests pays for summaries too
}{
	"the client for both":                      {"{upstream: {base_url: 'http://main/v1'}, condenser: {type: llm, max_size: 20}}", false, true},
	"the operator for both":                    {"{upstream: {base_url: 'http://main/v1', api_key: own-key}, condenser: {type: llm, max_size: 20}}", true, true},
	"the operator, elsewhere":                  {"{upstream: {base_url: 'http://main/v1', api_key: own-key}, condenser: {type: llm, max_size: 20, llm_config: a}, llms: {a: {model: gpt-4.1, base_url: 'http://cheap/v1', api_key: cheap-key}}}", true, true},
	"the operator for one":                     {"{upstream: {base_url: 'http://main/v1'}, condenser: {type: llm, max_size: 20, llm_config: a}, llms: {a: {model: gpt-4.1, api_key: cheap-key}}}", true, false},
	"the client, beside a provider with a key": {"{upstream: {base_url: 'http://main/v1', anthropic: {api_key: own-key}}, condenser: {type: llm, max_size: 20}}", false, true},
	"nobody, elsewhere":                        {"{upstream: {base_url: 'http://main/v1'}, condenser: {type: llm, max_size: 20, llm_config: a}, llms: {a: {model: gpt-4.1, base_url: 'http://cheap/v1'}}}", false, false},
}

// prompt is a client's request that upstream has in its cache.
type prompt struct{}

func (prompt) Cached(*session.View) int { return 1 << 20 }

func (prompt) Ask(string, int) []byte { return []byte(`{"the client's own request":true}`) }

// summarised runs a condensation that is due, and returns the server that it called.
func summarised(ctx context.Context, t *testing.T, text string, sent condense.Prefix) (*answering, error) {
	t.Helper()
	server := &answering{message: `{"role":"assistant","content":"COMPLETED: they talked.\nNEXT_STEP: go on."}`}
	cfg := load(t, ".yaml", text)
	// At these prices it is cheaper to ask behind a cached prompt.
	cfg.Models["gpt-4.1"] = model.Info{ContextWindow: 1e6, MaxOutput: 32_000, Price: model.Price{Input: 10, CachedInput: .01, Output: .01}}
	tenant, err := buildTenant(cfg, unshared(t, server), config.Tenant{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	in := input(40)
	in.Upstream = condense.Endpoint{BaseURL: tenant.Upstream.BaseURL.String(), APIKey: "client-key"}
	if key := tenant.Upstream.APIKey; key != "" {
		in.Upstream.APIKey = key
	}
	in.Thread.Sent = sent
	_, err = tenant.Condenser.Condense(in).Job.Run(ctx)
	return server, err
}

// TestOperatorsKeysAreForTrustedClients checks that no key of the operator's pays for a summary until upstream has accepted the client.
func TestOperatorsKeysAreForTrustedClients(t *testing.T) {
	for name, c := range payers {
		for _, trusted := range []bool{false, true} {
			for _, behind := range []condense.Prefix{nil, prompt{}} { // the client's own request
				ctx := limit.WithTrust(t.Context(), func() bool { return trusted })
				server, err := summarised(ctx, t, c.text, behind)
				call, _ := errors.AsType[*condense.CallError](err)
				refused := call != nil && call.Kind == condense.FailureUntrusted
				if want := c.operator && !trusted; refused != want || (server.url == "") != want {
					t.Errorf("%s, trusted %t, behind %v: called %q, %v", name, trusted, behind, server.url, err)
				}
			}
		}
	}
}

// TestSummariesBehindAClientsRequest checks that a summary reuses the client's own request as its prompt only if the one who pays for that
// request also pays for summaries.
func TestSummariesBehindAClientsRequest(t *testing.T) {
	for name, c := range payers {
		server, err := summarised(t.Context(), t, c.text, prompt{})
		if got := strings.Contains(server.body, "the client's own request"); err != nil || got != c.same {
			t.Errorf("%s: asked behind it %t, %v", name, got, err)
		}
	}
}

// TestOpenKeys checks which of the operator's keys are reported as open to any client.
func TestOpenKeys(t *testing.T) {
	cfg := config.Default()
	cfg.LLMs = map[string]config.LLM{"b": {APIKey: "k"}, "a": {APIKey: "k"}, "c": {}}
	if got := openKeys(cfg); !slices.Equal(got, []string{"llms.a.api_key", "llms.b.api_key"}) {
		t.Errorf("%q", got)
	}
	cfg.Upstream.APIKey = "k"
	if got := openKeys(cfg); len(got) != 3 || got[2] != "upstream.api_key" {
		t.Errorf("with the upstream's: %q", got)
	}
	cfg.Tenants = []config.Tenant{{Name: "a"}}
	if got := openKeys(cfg); got != nil {
		t.Errorf("with tenants: %q", got)
	}
}

// TestPagesSpendNoKeys: by default web pages may use the proxy, but not if they could spend the operator's keys without one of their own.
func TestPagesSpendNoKeys(t *testing.T) {
	cfg := config.Default()
	if got := origins(cfg); !slices.Equal(got, proxy.Origins{"*"}) {
		t.Errorf("with the clients' keys: %q", got)
	}
	cfg.Upstream.BaseURL = "http://127.0.0.1:11434/v1"
	if got := origins(cfg); len(got) > 0 {
		t.Errorf("with a server that may need no key: %q", got)
	}
	cfg.Upstream = config.Default().Upstream
	cfg.Upstream.APIKey = "k"
	if got := origins(cfg); len(got) > 0 {
		t.Errorf("with the operator's key: %q", got)
	}
	cfg.CORS.Origins = []string{"https://a.example"}
	if got := origins(cfg); !slices.Equal(got, proxy.Origins{"https://a.example"}) {
		t.Errorf("as configured: %q", got)
	}
	cfg.CORS.Origins, cfg.Tenants = nil, []config.Tenant{{Name: "a"}}
	if got := origins(cfg); !slices.Equal(got, proxy.Origins{"*"}) {
		t.Errorf("with tenants: %q", got)
	}
	cfg.CORS.Origins = []string{}
	if got := origins(cfg); len(got) > 0 {
		t.Errorf("none are allowed, but %q", got)
	}
}

// told is a summariser with a fixed reply.
type told condense.Reply

func (r told) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	return condense.Reply(r), nil
}

// TestSummariesAreLimited checks that a tenant's limits and budgets apply to summaries, even across a reload, and that the usage of a call is
// estimated if the server does not report it.
func TestSummariesAreLimited(t *testing.T) {
	measured := told{Usage: session.Usage{Input: 80, Output: 20}}
	for name, c := range map[string]struct {
		limits limit.Tenant
		reply  told
		spent  bool
		calls  int // that are made
	}{
		"no limit":                  {limit.Tenant{}, measured, false, 3},
		"two a minute":              {limit.Tenant{Summaries: 2}, measured, false, 2},
		"tokens for one":            {limit.Tenant{SummaryTokens: 100}, measured, false, 1},
		"tokens for two":            {limit.Tenant{SummaryTokens: 101}, measured, false, 2},
		"tokens for two, estimated": {limit.Tenant{SummaryTokens: 101}, told{Text: strings.Repeat("x", 360)}, false, 2},
		"a budget is spent":         {limit.Tenant{}, measured, true, 0},
	} {
		out := unshared(t, nil)
		ctx := limit.WithBudget(t.Context(), func(context.Context, string) bool { return c.spent })
		calls := 0
		for range 3 {
			reloaded := builder{out: out, tenant: "a", limits: c.limits}
			_, err := reloaded.limited(c.reply).Summarise(ctx, condense.Request{User: strings.Repeat("x", 40)})
			if call, _ := errors.AsType[*condense.CallError](err); call == nil {
				calls++
			} else if call.Kind != condense.FailureLimited {
				t.Errorf("%s: %v", name, err)
			}
		}
		if calls != c.calls {
			t.Errorf("%s: %d calls, want %d", name, calls, c.calls)
		}
	}
}

// TestOverridesInForce checks the precedence of overrides: one for all tenants that says off, then the tenant's own, then another for all
// tenants. An expired override has no effect.
func TestOverridesInForce(t *testing.T) {
	on, seen, off := admin.ModeOn, admin.ModeObserve, admin.ModeOff
	for _, c := range []struct {
		all, own admin.Mode
		observes bool
		want     admin.Mode
	}{
		{"", "", false, on}, {"", "", true, seen}, {"", off, true, off}, {"", on, true, on}, {on, "", true, on}, {seen, "", false, seen},
		{off, on, false, off}, {off, seen, true, off}, {seen, on, false, on}, {on, off, false, off}, {on, seen, false, seen},
	} {
		for _, left := range []time.Duration{time.Hour, -time.Second} {
			a := App{overrides: overrides{byTenant: map[string]admin.Override{}}, metrics: observe.NewMetrics()}
			for name, mode := range map[string]admin.Mode{"": c.all, "a": c.own, "b": off} {
				if mode != "" {
					a.overrides.byTenant[name] = admin.Override{Tenant: name, Mode: mode, Until: time.Now().Add(left)}
				}
			}
			want := c.want
			if left < 0 {
				want = map[bool]admin.Mode{false: on, true: seen}[c.observes]
			}
			if got := a.overrides.condensing("a", c.observes); got.InForce != want {
				t.Errorf("%+v, %v left: %s is in force", c, left, got.InForce)
			}
			tenant := &proxy.Tenant{Tenant: engine.Tenant{Name: "a", Observe: c.observes}}
			a.applyOverrides([]*proxy.Tenant{tenant})
			if tenant.Observe != (want == seen) || tenant.Off != (want == off) {
				t.Errorf("%+v, %v left: observes %t, off %t", c, left, tenant.Observe, tenant.Off)
			}
		}
	}
}

// archive is a store of settings that may fail.
type archive struct {
	session.Archive
	settings map[string][]byte
	err      error
}

func (a *archive) Set(_ context.Context, name string, value []byte) error {
	if a.settings == nil {
		a.settings = map[string][]byte{}
	}
	a.settings[name] = value
	return a.err
}

func (a *archive) Settings(context.Context) (map[string][]byte, error) { return a.settings, a.err }

// TestKnownOverridesOutlastTheStore checks that an override stays in force while the store is unavailable and if it has lost the
// override, but not if that was removed.
func TestKnownOverridesOutlastTheStore(t *testing.T) {
	override := admin.Override{Tenant: "a", Mode: admin.ModeOff, Until: time.Now().Add(time.Hour).UTC()}
	store := &archive{settings: map[string][]byte{overridePrefix + "a": override.Encode(), "other": []byte("x")}}
	l := overrides{store: store, log: zap.NewNop()}
	for i, step := range []struct {
		change  func()
		changed bool
		want    admin.Mode
	}{
		{func() {}, true, admin.ModeOff}, {func() {}, false, admin.ModeOff},
		{func() { store.settings, store.err = nil, session.ErrUnavailable }, false, admin.ModeOff},
		{func() { store.err = nil }, false, admin.ModeOff}, // it was lost, and is written back
		{func() {
			removal := admin.Override{Tenant: "a", Since: override.Since.Add(1), Until: override.Until}
			store.settings[overridePrefix+"a"] = removal.Encode()
		}, true, admin.ModeOn},
		{func() { store.settings[overridePrefix+"a"] = override.Encode() }, false, admin.ModeOn}, // by a replica that has not heard of the removal
		{func() { clear(store.settings) }, false, admin.ModeOn},
	} {
		step.change()
		changed := l.refresh(t.Context())
		if has := admin.DecodeOverride(store.settings[overridePrefix+"a"]); store.err == nil && has.Mode != override.Mode && step.want == admin.ModeOff {
			t.Errorf("step %d: the store has %+v", i, has)
		}
		if changed != step.changed || l.condensing("a", false).InForce != step.want {
			t.Errorf("step %d: changed %t, %s is in force", i, changed, l.condensing("a", false).InForce)
		}
	}
}
