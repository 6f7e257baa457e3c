package config

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// TestBounds checks both sides of bounds: the last valid value, and the first one that is refused under its key.
func TestBounds(t *testing.T) {
	key := func(c string) []APIKey { return []APIKey{{SHA256: strings.Repeat(c, 64)}} }
	share := func(f float64) *float64 { return &f }
	background := func(share float64) func(*Config) {
		return func(c *Config) { c.Condenser = catalogue.Default(catalogue.TypeLLM); c.Condenser.BackgroundAt = share }
	}
	budget := func(period limit.Period, usd float64) func(*Config) {
		return func(c *Config) { c.Limits.Tenant.Budget = limit.Budget{USD: usd, Period: period} }
	}
	tenant := func(name string) func(*Config) {
		return func(c *Config) { c.Tenants = []Tenant{{Name: name, APIKeys: key("a")}} }
	}
	llm := func(temperature float64) func(*Config) {
		return func(c *Config) { c.LLMs = map[string]LLM{"a": {Model: "m", Temperature: share(temperature)}} }
	}
	encryption := func(text string) func(*Config) {
		return func(c *Config) { c.Store.Encryption.Keys = map[string]Secret{"k": Secret(text)} }
	}
	sealing := []byte(strings.Repeat("\xff", encryptionKeySize))
	standard := base64.StdEncoding.EncodeToString(sealing)
	for name, c := range map[string]struct {
		key       string
		good, bad func(*Config)
	}{
		"the shortest time for the store": {"store.timeout", func(c *Config) { c.Store.Timeout = minTimeout }, func(c *Config) { c.Store.Timeout = minTimeout - 1 }},
		"the longest":                     {"store.timeout", func(c *Config) { c.Store.Timeout = maxTimeout }, func(c *Config) { c.Store.Timeout = maxTimeout + 1 }},
		"the shortest secret":             {"store.secret", func(c *Config) { c.Store.Secret = "16 characters..." }, func(c *Config) { c.Store.Secret = "15 characters.." }},
		"the highest temperature":         {"llms.a.temperature", llm(2), llm(2.01)},
		"the lowest":                      {"llms.a.temperature", llm(0), llm(-.01)},
		"room for one body":               {"limits.bytes_in_flight", func(c *Config) { c.Limits.BytesInFlight = c.Limits.MaxBody }, func(c *Config) { c.Limits.BytesInFlight = c.Limits.MaxBody - 1 }},
		"an origin with a path":           {"cors.origins[0]", func(c *Config) { c.CORS.Origins = []string{"https://app.example:8443"} }, func(c *Config) { c.CORS.Origins = []string{"https://app.example/"} }},
		"a pattern of origins":            {"cors.origins[0]", func(c *Config) { c.CORS.Origins = []string{"*"} }, func(c *Config) { c.CORS.Origins = []string{"https://*.example"} }},
		"an origin in capitals":           {"cors.origins[0]", func(c *Config) { c.CORS.Origins = nil }, func(c *Config) { c.CORS.Origins = []string{"https://App.example"} }},
		"a header of credentials":         {"session.headers[0]", func(c *Config) { c.Session.Headers = []string{"x-authorization"} }, func(c *Config) { c.Session.Headers = []string{"Authorization"} }},
		"any progress":                    {"condenser.minimum_progress", func(c *Config) { c.Condenser.MinimumProgress = .001 }, func(c *Config) { c.Condenser.MinimumProgress = 0 }},
		"all progress":                    {"condenser.minimum_progress", func(c *Config) { c.Condenser.MinimumProgress = .999 }, func(c *Config) { c.Condenser.MinimumProgress = 1 }},
		"the earliest summary":            {"condenser.background_at", background(.5), background(.49)},
		"the latest":                      {"condenser.background_at", background(.99), background(1)},
		"half held out":                   {"holdout", func(c *Config) { c.Holdout.Share = .5 }, func(c *Config) { c.Holdout.Share = .51 }},
		"a long name":                     {"tenants[0].name", tenant(strings.Repeat("a", maxTenantName)), tenant(strings.Repeat("a", maxTenantName+1))},
		"the shortest period":             {"limits.tenant.budget.period", budget(minPeriod, 1), budget(minPeriod-1, 1)},
		"the longest period":              {"limits.tenant.budget.period", budget(maxPeriod, 1), budget(maxPeriod+1, 1)},
		"a calendar month":                {"limits.tenant.budget.period", budget(limit.Month, 1), budget(limit.Month-1, 1)},
		"the largest budget":              {"limits.tenant.budget.usd", budget(limit.Day, maxUSD), budget(limit.Day, maxUSD+1)},
		"a key with a DEL":                {"upstream.api_key", func(c *Config) { c.Upstream.APIKey = "sk-~" }, func(c *Config) { c.Upstream.APIKey = "sk-\x7f" }},
		"32 bytes in hexadecimal":         {"store.encryption.keys.k", encryption(hex.EncodeToString(sealing)), encryption(hex.EncodeToString(append(sealing, 0)))},
		"32 bytes in base64":              {"store.encryption.keys.k", encryption(standard), encryption(standard[:42] + "9=")}, // its last bits are not part of the key
		"a tenant's own key":              {"tenants[1].api_keys[0]", twoTenants(key("a"), key("b")), twoTenants(key("a"), key("a"))},
	} {
		cfg := Default()
		if c.good(cfg); cfg.Validate() != nil {
			t.Errorf("%s is refused: %v", name, cfg.Validate())
		}
		cfg = Default()
		c.bad(cfg)
		var problems Problems
		if err := cfg.Validate(); !errors.As(err, &problems) || len(problems) != 1 || problems[0].Key != c.key {
			t.Errorf("beyond %s: %v", name, err)
		}
	}
}

func twoTenants(first, second []APIKey) func(*Config) {
	return func(c *Config) { c.Tenants = []Tenant{{Name: "a", APIKeys: first}, {Name: "b", APIKeys: second}} }
}

// TestMovedTenantsDoNotDiffer checks that a tenant that moved to another file is the same one.
func TestMovedTenantsDoNotDiffer(t *testing.T) {
	before, now := Default(), Default()
	before.Tenants, now.Tenants = []Tenant{{Name: "a", Key: "tenants[0]"}}, []Tenant{{Name: "a", Key: "a.yaml"}}
	if d := before.Differences(now); len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Keys) > 0 {
		t.Errorf("%+v", d)
	}
	now.Tenants[0].Notify = true
	if d := before.Differences(now); len(d.Changed) != 1 {
		t.Errorf("%+v", d)
	}
}
