package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// defaultTenant is who everybody is where no tenants are configured.
const defaultTenant = "default"

// buildTenants makes the tenants. Without any there is one that takes every key.
func buildTenants(cfg *config.Config, transport http.RoundTripper) (*proxy.Tenants, error) {
	if len(cfg.Tenants) == 0 {
		t, err := buildTenant(cfg, transport, config.Tenant{Name: defaultTenant})
		if err != nil {
			return nil, err
		}
		t.Anonymous = true
		return proxy.NewTenants(t), nil
	}
	var tenants []*proxy.Tenant
	for _, c := range cfg.Tenants {
		t, err := buildTenant(cfg, transport, c)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", c.Name, err)
		}
		tenants = append(tenants, t)
	}
	return proxy.NewTenants(tenants...), nil
}

func buildTenant(cfg *config.Config, transport http.RoundTripper, c config.Tenant) (*proxy.Tenant, error) {
	upstream := cfg.UpstreamFor(c)
	base, err := url.Parse(upstream.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream.base_url: %w", err)
	}
	build := builder{config: cfg, transport: transport, upstream: upstream}
	condenser, err := build.condenser(cfg.CondenserFor(c))
	if err != nil {
		return nil, err
	}
	t := &proxy.Tenant{
		Name: c.Name, Condenser: condenser, Cooldown: &condense.Cooldown{}, Observe: c.Observe,
		Upstream: proxy.UpstreamConfig{BaseURL: base, APIKey: upstream.APIKey.Reveal(), Timeout: upstream.Timeout},
	}
	for _, k := range c.APIKeys {
		sum, ok := k.Digest()
		if !ok {
			return nil, errors.New("api_keys: a key is neither a SHA-256 nor a variable that is set")
		}
		t.Keys = append(t.Keys, sum)
	}
	return t, nil
}

// CondenserAvailable says which condenser types this version runs.
func CondenserAvailable(kind string) bool {
	switch kind {
	case config.TypeNoop, config.TypeRecentEvents, config.TypeLLM:
		return true
	}
	return false
}

// builder makes condensers for one tenant.
type builder struct {
	config    *config.Config
	transport http.RoundTripper
	upstream  config.Upstream
}

func (b builder) condenser(c config.Condenser) (condense.Condenser, error) {
	switch c.Type {
	case config.TypeNoop:
		return condense.Noop{}, nil
	case config.TypeRecentEvents:
		return condense.RecentEvents{KeepFirst: c.KeepFirst, MaxEvents: c.MaxEvents}, nil
	case config.TypeLLM:
		return b.llm(c)
	}
	return nil, fmt.Errorf("condenser.type: %q is not available in this version", c.Type)
}

func (b builder) llm(c config.Condenser) (condense.Condenser, error) {
	llm, known := b.config.LLMFor(c.LLMConfig, b.upstream)
	if !known {
		return nil, fmt.Errorf("condenser.llm_config: %q is not one of llms", c.LLMConfig)
	}
	timeout := llm.Timeout
	if c.Timeout > 0 {
		timeout = c.Timeout
	}
	s := condense.LLMSettings{
		Settings: condense.Settings{
			MaxSize: c.MaxSize, MaxTokens: c.MaxTokens, KeepFirst: c.KeepFirst, MinimumProgress: c.MinimumProgress,
		},
		Summariser: condense.OpenAI{
			Client: &http.Client{Transport: b.transport}, Timeout: timeout, Temperature: narrow(llm.Temperature),
		},
		Endpoint:       condense.Endpoint{BaseURL: llm.BaseURL, APIKey: llm.APIKey.Reveal()},
		Model:          llm.Model,
		MaxOutput:      llm.MaxOutput,
		MaxEventLength: c.MaxEventLength,
	}
	if llm.Model != "" {
		m, _ := b.config.ModelFor(llm.Model)
		s.Window = m.ContextWindow
	}
	return condense.NewLLM(s), nil
}

func narrow(v *float64) *float32 {
	if v == nil {
		return nil
	}
	n := float32(*v)
	return &n
}
