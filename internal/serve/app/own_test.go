package app

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

func TestLeadsTo(t *testing.T) {
	for _, tt := range []struct {
		base, listener string
		want           bool
	}{
		{"http://127.0.0.1:8080/v1", "127.0.0.1:8080", true},
		{"http://localhost:8080/v1", "127.0.0.1:8080", true},
		{"http://[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", true},
		{"http://0.0.0.0:8080", "127.0.0.1:8080", true},
		{"http://127.0.0.2:8080", "0.0.0.0:8080", true},
		{"http://[::1]", ":80", true},
		{"http://127.0.0.1:8080", ":8080", true},
		{"http://127.0.0.1:8080", "localhost:8080", true},
		{"http://127.0.0.1:8081", "127.0.0.1:8080", false},
		{"http://127.0.0.2:8080", "127.0.0.1:8080", false},
		{"http://192.0.2.1:8080", "0.0.0.0:8080", false}, // reserved for documentation
		{"https://127.0.0.1", "127.0.0.1:80", false},
		{"", "127.0.0.1:8080", false},
		{"http://127.0.0.1:8080", "", false}, // no admin port
	} {
		if got := leadsTo(tt.base, tt.listener); got != tt.want {
			t.Errorf("%s, %s: %v", tt.base, tt.listener, got)
		}
	}
}

func TestOwnPortAsAProvidersAddress(t *testing.T) {
	own := config.Provider{BaseURL: "http://127.0.0.1:8080/v1"}
	cfg := config.Default()
	cfg.Upstream.Anthropic = own
	cfg.Tenants = []config.Tenant{{Name: "a", Upstream: config.Upstream{ChatGPT: own}}}
	err := checkLoops(cfg, "127.0.0.1:8080")
	for _, key := range []string{"upstream.anthropic.base_url: leads back", "tenants[0].upstream.chatgpt.base_url: leads back"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q is missing in %v", key, err)
		}
	}
}
