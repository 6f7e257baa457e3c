package config_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// TestHash: settings change the hash, secrets do not.
func TestHash(t *testing.T) {
	base, same, other, tenant := config.Default(), config.Default(), config.Default(), config.Default()
	secret, rotated := config.Default(), config.Default()
	secret.Upstream.APIKey, rotated.Upstream.APIKey = "sk-secret", "sk-another"
	other.Condenser.MaxSize++
	tenant.Tenants = []config.Tenant{{Name: "a"}}
	if base.Hash() != same.Hash() {
		t.Error("equal configurations differ")
	}
	if secret.Hash() != rotated.Hash() {
		t.Error("a secret counts")
	}
	for _, c := range []*config.Config{other, tenant} {
		if c.Hash() == base.Hash() {
			t.Error("different configurations have the same hash")
		}
	}
}
