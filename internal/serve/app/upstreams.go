package app

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// upstreams returns the usual upstream of a tenant's requests, and those of the providers that have another one.
func upstreams(cfg *config.Config, t config.Tenant, through http.RoundTripper) (proxy.UpstreamConfig, map[provider.Name]proxy.UpstreamConfig, error) {
	paying := slices.ContainsFunc(cfg.UpstreamsFor(t), func(up config.Upstream) bool { return up.APIKey != "" })
	build := func(p provider.Name) (proxy.UpstreamConfig, error) {
		up := cfg.UpstreamFor(t, p)
		built, err := upstream(up)
		built.Transport = through
		built.Unpaid = paying && up.APIKey == "" && !cfg.IsOpen()
		if err != nil {
			err = errors.New(addressKey(cfg, t, p) + ": is not a URL") // which is not shown, since it may hold a password
		}
		return built, err
	}
	usual, err := build(provider.OpenAI)
	providers := map[provider.Name]proxy.UpstreamConfig{}
	for _, p := range provider.Names() {
		if cfg.UpstreamFor(t, p) == cfg.UpstreamFor(t, provider.OpenAI) {
			continue
		}
		var failed error
		providers[p], failed = build(p)
		err = errors.Join(err, failed)
	}
	return usual, providers, err
}

func upstream(up config.Upstream) (proxy.UpstreamConfig, error) {
	compacts := map[string]proxy.Compacts{config.CompactionPass: proxy.CompactsItself, config.CompactionAnswer: proxy.CompactsNot}
	base, err := url.Parse(up.BaseURL)
	return proxy.UpstreamConfig{
		BaseURL: base, APIKey: up.APIKey.Reveal(), Timeout: up.Timeout, AlternateRoles: up.AlternateRoles, Compacts: compacts[up.Compaction],
	}, err
}

// addressKey returns the key of the configuration that gives a tenant's provider its address.
func addressKey(cfg *config.Config, t config.Tenant, p provider.Name) string {
	base := cfg.UpstreamFor(t, p).BaseURL
	for _, a := range (config.Tenant{Upstream: t.Upstream}).Addresses(keyOf(cfg, t)) {
		if a.URL == base {
			return a.Key
		}
	}
	for _, a := range (config.Tenant{Upstream: cfg.Upstream}).Addresses("") {
		if a.URL == base {
			return a.Key
		}
	}
	return "upstream.base_url"
}
