package app

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestEncryptionIsConfigured checks that store.encryption encrypts the store's file.
func TestEncryptionIsConfigured(t *testing.T) {
	const mark = "MARK-of-a-message"
	for _, tt := range []struct {
		text  string
		clear bool
	}{
		{"store: {}", true},
		{"store: {encryption: {active: k, keys: {k: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8}}}", false},
		{"store: {encryption: {keys: {k: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8}}}", true},
	} {
		cfg := load(t, ".yaml", tt.text)
		store, err := openStore(cfg, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		err = store.Append(t.Context(), session.Batch{
			Thread: session.Thread{ID: "t", Len: 1}, Events: []session.Event{{Pos: 1, Payload: []byte(mark)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(cfg.Store.Path)
		if err != nil || bytes.Contains(file, []byte(mark)) != tt.clear {
			t.Errorf("%s: in clear %v, %v", tt.text, !tt.clear, err)
		}
	}
}

// TestLimitsAreConfigured checks that a tenant's limits replace the default ones as a whole, and that changing either needs no restart.
func TestLimitsAreConfigured(t *testing.T) {
	cfg := load(t, ".yaml", `
limits: {tenant: {concurrent: 20, max_body: 8MiB, requests_per_minute: 600, tokens_per_minute: 2000000}}
tenants:
  - {name: a, api_keys: [{env: KEY}], limits: {concurrent: 4}}
  - {name: b, api_keys: [{sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]}
`)
	standard := limit.Tenant{Concurrent: 20, Body: 8 << 20, Requests: 600, Tokens: 2_000_000}
	for i, want := range []limit.Tenant{{Concurrent: 4}, standard} {
		if tenant, err := buildTenant(cfg, unshared(t, nil), cfg.Tenants[i]); err != nil || tenant.Limits != want {
			t.Errorf("%d: %+v, %v", i, tenant, err)
		}
	}
	if tenant, err := buildTenant(cfg, unshared(t, nil), config.Tenant{Name: config.DefaultTenant}); err != nil || tenant.Limits != standard {
		t.Errorf("without tenants: %+v, %v", tenant, err)
	}
	other := *cfg
	other.Limits.Tenant.Concurrent++
	if _, keys := effective(cfg, &other); len(keys) > 0 {
		t.Errorf("at the next start: %v", keys)
	}
	other.Limits.MaxBody++
	if _, keys := effective(cfg, &other); !slices.Equal(keys, []string{"limits"}) {
		t.Errorf("at the next start: %v", keys)
	}
}

// TestSummariserTimeoutsNeedNoRestart checks that a condensation has the time for three calls of the slowest summariser, at least five
// minutes, and that changing a timeout needs no restart.
func TestSummariserTimeoutsNeedNoRestart(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"llms: {slow: {model: m, timeout: 10s}}":             5 * time.Minute,
		"llms: {slow: {model: m, timeout: 20m}}":             time.Hour,
		"condenser: {type: llm, max_size: 10, timeout: 30m}": 90 * time.Minute,
		"limits: {summariser_timeout: 10m}":                  30 * time.Minute,
	} {
		cfg := load(t, ".yaml", text)
		tenant, err := buildTenant(cfg, unshared(t, nil), config.Tenant{Name: config.DefaultTenant})
		if err != nil || tenant.CondenseTimeout != want {
			t.Errorf("%s: %+v, %v", text, tenant, err)
		}
		before := *cfg
		before.LLMs, before.Condenser = nil, config.Condenser{}
		if _, keys := effective(&before, cfg); len(keys) > 0 {
			t.Errorf("%s: at the next start: %v", text, keys)
		}
	}
}
