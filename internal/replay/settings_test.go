package replay_test

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

func loaded(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := source.Load(source.Input{File: file(t, "dewpoint.yaml", text)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestSettingsTakeTheCondenserOfATenant(t *testing.T) {
	key := strings.Repeat("ab", 31)
	two := loaded(t, `
condenser: {type: excerpts, max_size: 50}
tenants:
  a: {api_keys: [{sha256: `+key+`00}], condenser: {type: amortized_forgetting, max_size: 30}}
  b: {api_keys: [{sha256: `+key+`01}]}`)
	one := loaded(t, "tenants: {a: {api_keys: [{sha256: "+key+"00}], condenser: {type: noop}}}")
	f := func(from *config.Config, c replay.Choice, kind string, size int) {
		t.Helper()
		cfg, err := replay.Settings(from, c)
		if err != nil || cfg.Condenser.Type != kind || cfg.Condenser.MaxSize != size {
			t.Errorf("%+v: %v, %+v", c, err, cfg)
		}
	}
	f(two, replay.Choice{}, "excerpts", 50)
	f(two, replay.Choice{Tenant: "a"}, "amortized_forgetting", 30)
	f(two, replay.Choice{Tenant: "b", MaxSize: 20}, "excerpts", 20)
	f(one, replay.Choice{}, "noop", 0)
	f(loaded(t, ""), replay.Choice{Tenant: "default", MaxTokens: 0.5}, "excerpts", 240)
	if _, err := replay.Settings(two, replay.Choice{Tenant: "c"}); err == nil || !strings.Contains(err.Error(), `no tenant "c"`) {
		t.Errorf("%v", err)
	}
}

// TestSettingsDistinguishPayers: the settings contain no key of the configuration, but still distinguish models that are called with another key than
// the requests, or at another URL.
func TestSettingsDistinguishPayers(t *testing.T) {
	f := func(text string, upstream bool, llms map[string]bool) {
		t.Helper()
		from := loaded(t, text)
		cfg, err := replay.Settings(from, replay.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Upstream.APIKey; (got != "") != upstream || strings.Contains(got.Reveal(), "secret") {
			t.Errorf("%s: upstream has the key %q", text, got.Reveal())
		}
		for name, keyed := range llms {
			if got := cfg.LLMs[name].APIKey; (got != "") != keyed || strings.Contains(got.Reveal(), "secret") {
				t.Errorf("%s: %s has the key %q", text, name, got.Reveal())
			}
		}
		if from.LLMs["own"].APIKey != "secret-2" {
			t.Error("the configuration was changed")
		}
	}
	const llms = `
llms: {same: {model: m}, own: {model: m, api_key: secret-2}, local: {model: m, base_url: "http://127.0.0.1:1/v1"}}
`
	f(llms, false, map[string]bool{"same": false, "own": true, "local": true})
	f(llms+"upstream: {api_key: secret-1}", true, map[string]bool{"same": false, "own": true, "local": true})
}
