package config

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
)

func TestTenantsInheritTheGeneralUpstream(t *testing.T) {
	cfg := Default()
	cfg.Upstream = Upstream{BaseURL: "https://a/v1/", APIKey: "key-a", Timeout: time.Minute}
	for name, c := range map[string]struct{ tenant, want Upstream }{
		"inherits": {Upstream{}, Upstream{BaseURL: "https://a/v1", APIKey: "key-a", Timeout: time.Minute}},
		"own key":  {Upstream{APIKey: "own"}, Upstream{BaseURL: "https://a/v1", APIKey: "own", Timeout: time.Minute}},
		"own URL":  {Upstream{BaseURL: "https://b/v1/"}, Upstream{BaseURL: "https://b/v1", Timeout: time.Minute}},
		"same URL": {Upstream{BaseURL: "https://a/v1"}, Upstream{BaseURL: "https://a/v1", APIKey: "key-a", Timeout: time.Minute}},
		"own roles": {
			Upstream{AlternateRoles: true}, Upstream{BaseURL: "https://a/v1", APIKey: "key-a", Timeout: time.Minute, AlternateRoles: true},
		},
		"everything": {
			Upstream{BaseURL: "https://b", APIKey: "own", Timeout: time.Hour}, Upstream{BaseURL: "https://b", APIKey: "own", Timeout: time.Hour},
		},
		"key without host": {Upstream{APIKey: "own", Timeout: 1}, Upstream{BaseURL: "https://a/v1", APIKey: "own", Timeout: 1}},
		"own compaction": {
			Upstream{Compaction: CompactionAnswer},
			Upstream{BaseURL: "https://a/v1", APIKey: "key-a", Timeout: time.Minute, Compaction: CompactionAnswer},
		},
	} {
		for _, p := range append(provider.Names(), General) {
			if got := cfg.UpstreamFor(Tenant{Upstream: c.tenant}, p); got != c.want {
				t.Errorf("%s, %s: got %+v %q", name, p, got, got.APIKey.Reveal())
			}
		}
	}
}

// A key is sent only to the server for which it was configured.
func TestProvidersHaveTheirOwnAddressAndKey(t *testing.T) {
	const openAI, anthropic, chatGPT = "https://api.openai.com/v1", "https://api.anthropic.com/v1", "https://chatgpt.com/backend-api/codex"
	type target struct {
		url string
		key Secret
	}
	for name, c := range map[string]struct {
		config, tenant                      Upstream
		general, openAI, anthropic, chatGPT target
	}{
		"nothing is configured": {
			general: target{openAI, ""}, openAI: target{openAI, ""}, anthropic: target{anthropic, ""}, chatGPT: target{chatGPT, ""},
		},
		"a key without an address is OpenAI's": {
			config:  Upstream{APIKey: "k"},
			general: target{openAI, "k"}, openAI: target{openAI, "k"}, anthropic: target{anthropic, ""}, chatGPT: target{chatGPT, ""},
		},
		"an address serves all": {
			config:  Upstream{BaseURL: "http://a/v1", APIKey: "k"},
			general: target{"http://a/v1", "k"}, openAI: target{"http://a/v1", "k"}, anthropic: target{"http://a/v1", "k"}, chatGPT: target{"http://a/v1", "k"},
		},
		"but for a provider with its own": {
			config:  Upstream{BaseURL: "http://a/v1", APIKey: "k", Anthropic: Provider{BaseURL: "http://b/v1/"}},
			general: target{"http://a/v1", "k"}, openAI: target{"http://a/v1", "k"}, anthropic: target{"http://b/v1", ""}, chatGPT: target{"http://a/v1", "k"},
		},
		"a provider's key is for its own address": {
			config:  Upstream{APIKey: "k", Anthropic: Provider{APIKey: "ant"}},
			general: target{openAI, "k"}, openAI: target{openAI, "k"}, anthropic: target{anthropic, "ant"}, chatGPT: target{chatGPT, ""},
		},
		"a tenant's address serves all of its requests": {
			config:  Upstream{APIKey: "k", Anthropic: Provider{BaseURL: "http://b/v1", APIKey: "ant"}},
			tenant:  Upstream{BaseURL: "http://t/v1"},
			general: target{"http://t/v1", ""}, openAI: target{"http://t/v1", ""}, anthropic: target{"http://t/v1", ""}, chatGPT: target{"http://t/v1", ""},
		},
		"a tenant's key replaces the operator's": {
			config:  Upstream{APIKey: "k", Anthropic: Provider{BaseURL: "http://b/v1", APIKey: "ant"}},
			tenant:  Upstream{Anthropic: Provider{APIKey: "own"}},
			general: target{openAI, "k"}, openAI: target{openAI, "k"}, anthropic: target{"http://b/v1", "own"}, chatGPT: target{chatGPT, ""},
		},
		"a tenant's provider elsewhere gets no key of the operator's": {
			config:  Upstream{APIKey: "k", Anthropic: Provider{APIKey: "ant"}},
			tenant:  Upstream{Anthropic: Provider{BaseURL: "http://t/v1"}},
			general: target{openAI, "k"}, openAI: target{openAI, "k"}, anthropic: target{"http://t/v1", ""}, chatGPT: target{chatGPT, ""},
		},
		"nor a tenant's OpenAI elsewhere": {
			config:  Upstream{APIKey: "k"},
			tenant:  Upstream{OpenAI: Provider{BaseURL: "http://t/v1"}},
			general: target{"http://t/v1", ""}, openAI: target{"http://t/v1", ""}, anthropic: target{anthropic, ""}, chatGPT: target{chatGPT, ""},
		},
		"a key beside OpenAI's own address is for that": {
			config:  Upstream{APIKey: "k", OpenAI: Provider{BaseURL: "http://o/v1"}},
			general: target{"http://o/v1", "k"}, openAI: target{"http://o/v1", "k"}, anthropic: target{anthropic, ""}, chatGPT: target{chatGPT, ""},
		},
	} {
		cfg := Default()
		cfg.Upstream = c.config
		for p, want := range map[provider.Name]target{
			General: c.general, provider.OpenAI: c.openAI, provider.Anthropic: c.anthropic, provider.ChatGPT: c.chatGPT,
		} {
			if up := cfg.UpstreamFor(Tenant{Upstream: c.tenant}, p); up.BaseURL != want.url || up.APIKey != want.key {
				t.Errorf("%s: %q goes to %s with the key %q, want %s with %q", name, p, up.BaseURL, up.APIKey.Reveal(), want.url, want.key.Reveal())
			}
		}
	}
}

func TestLLMFor(t *testing.T) {
	cfg := Default()
	cfg.Upstream = Upstream{BaseURL: "https://main/v1/", APIKey: "key-main"}
	cfg.LLMs = map[string]LLM{
		"same":  {Model: "m"},
		"keyed": {Model: "m", APIKey: "own"},
		"other": {Model: "m", BaseURL: "http://local/v1/", Timeout: time.Second},
		"own":   {Model: "m", BaseURL: "http://local/v1", APIKey: "own"},
	}
	tenant := Tenant{Upstream: Upstream{BaseURL: "https://a/v1", APIKey: "key-a"}}
	up := cfg.UpstreamFor(tenant, General)
	for name, want := range map[string]LLM{
		"":      {BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
		"same":  {Model: "m", BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
		"other": {Model: "m", BaseURL: "http://local/v1", Timeout: time.Second},
		"own":   {Model: "m", BaseURL: "http://local/v1", APIKey: "own", Timeout: 30 * time.Second},
		"keyed": {Model: "m", BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
	} {
		if got, known := cfg.LLMFor(name, tenant, up); got != want || !known {
			t.Errorf("%q is %+v %q, %v", name, got, got.APIKey.Reveal(), known)
		}
	}
	cfg.Upstream.BaseURL = "https://a/v1/"
	if got, _ := cfg.LLMFor("keyed", tenant, up); got.APIKey != "own" {
		t.Errorf("at the configuration's upstream it has the key %q", got.APIKey.Reveal())
	}
	if got, known := cfg.LLMFor("none", tenant, up); known {
		t.Errorf("an unknown name gave %+v", got)
	}
}

// A condenser model gets no key that was configured for another provider.
func TestCondenserModelsOfRequestsToAnotherProvider(t *testing.T) {
	const openAI, anthropic = "https://api.openai.com/v1", "https://api.anthropic.com/v1"
	llms := map[string]LLM{
		"cheap": {Model: "m"},
		"keyed": {Model: "m", APIKey: "own"},
		"haiku": {Model: "m", BaseURL: anthropic},
	}
	for _, c := range []struct {
		upstream Upstream
		name     string
		url      string
		key      Secret
	}{
		{Upstream{}, "", anthropic, ""},
		{Upstream{APIKey: "k"}, "", anthropic, ""},
		{Upstream{APIKey: "k", Anthropic: Provider{APIKey: "ant"}}, "", anthropic, "ant"},
		{Upstream{}, "cheap", anthropic, ""},
		{Upstream{APIKey: "k"}, "cheap", openAI, "k"},
		{Upstream{OpenAI: Provider{APIKey: "oai"}}, "cheap", openAI, "oai"},
		{Upstream{BaseURL: "http://a/v1", OpenAI: Provider{BaseURL: openAI, APIKey: "oai"}}, "cheap", "http://a/v1", ""},
		{Upstream{}, "keyed", openAI, "own"},
		{Upstream{APIKey: "k"}, "haiku", anthropic, ""},
		{Upstream{APIKey: "k", Anthropic: Provider{APIKey: "ant"}}, "haiku", anthropic, "ant"},
	} {
		cfg := Default()
		cfg.Upstream, cfg.LLMs = c.upstream, llms
		got, _ := cfg.LLMFor(c.name, Tenant{}, cfg.UpstreamFor(Tenant{}, provider.Anthropic))
		if got.BaseURL != c.url || got.APIKey != c.key {
			t.Errorf("%q of %+v is called at %s with the key %q, want %s with %q", c.name, c.upstream, got.BaseURL, got.APIKey.Reveal(), c.url, c.key.Reveal())
		}
	}
}
