package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// defaultTenant is the name of the tenant of all clients where none are configured.
const defaultTenant = "default"

// buildTenants makes the tenants. Without any there is one that takes every key.
func buildTenants(cfg *config.Config, out *calls) ([]*proxy.Tenant, error) {
	var tenants []*proxy.Tenant
	for _, c := range tenantsOf(cfg) {
		t, err := buildTenant(cfg, out, c)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", c.Name, err)
		}
		t.Anonymous = len(cfg.Tenants) == 0
		tenants = append(tenants, t)
	}
	return tenants, nil
}

// tenantsOf returns a configuration's tenants, or the one that there is without any.
func tenantsOf(cfg *config.Config) []config.Tenant {
	if len(cfg.Tenants) == 0 {
		return []config.Tenant{defaultTenantOf(cfg)}
	}
	return cfg.Tenants
}

// defaultTenantOf returns the tenant of a configuration without tenants.
func defaultTenantOf(cfg *config.Config) config.Tenant {
	return config.Tenant{
		Name: defaultTenant, Notify: cfg.Notify, LogContent: cfg.LogContent, Holdout: cfg.Holdout, Knowledge: cfg.Knowledge, Memory: cfg.Memory,
		KeepWarm: cfg.KeepWarm, KeepWarmUSD: cfg.KeepWarmUSD,
	}
}

// compacts is whether an upstream compacts histories, by its configuration.
func compacts(setting string) proxy.Compacts {
	switch setting {
	case config.CompactionPass:
		return proxy.CompactsItself
	case config.CompactionAnswer:
		return proxy.CompactsNot
	}
	return proxy.CompactsPerhaps
}

func buildTenant(cfg *config.Config, out *calls, c config.Tenant) (*proxy.Tenant, error) {
	upstream := cfg.UpstreamFor(c)
	base, err := url.Parse(upstream.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream.base_url: %w", err)
	}
	build := builder{config: cfg, out: out, tenant: c.Name, upstream: upstream, base: base.String(), health: out.health.Tenant(), limits: cfg.LimitsFor(c)}
	build.rides = condense.NewRides(build.prices)
	chosen := cfg.CondenserFor(c)
	condenser, err := build.condenser("condenser", chosen)
	if err != nil {
		return nil, err
	}
	told, err := out.shelves.of(c.Knowledge)
	if err != nil {
		return nil, err
	}
	deadline, never := chosen.Waits()
	t := &proxy.Tenant{
		Tenant: engine.Tenant{Name: c.Name, Condenser: condenser, Observe: cfg.Observes(c), Deadline: deadline, Never: never, Ahead: chosen.Prepares(),
			Holdout: c.Holdout, Hidden: hidden(chosen), Knowledge: told, Repeats: repeats(cfg.LimitsFor(c)),
			Promise: out.promise(c)},
		Notify: c.Notify, LogContent: c.LogContent, Limits: cfg.LimitsFor(c), Draw: out.drawOf(cfg.LimitsFor(c)), Cooling: build.health.Cooling,
		Upstream: proxy.UpstreamConfig{
			BaseURL: base, APIKey: upstream.APIKey.Reveal(), Timeout: upstream.Timeout, AlternateRoles: upstream.AlternateRoles,
			Compacts: compacts(upstream.Compaction),
		},
	}
	if c.KeepWarm {
		t.Warm = build.warm(c)
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

// repeats is from when on a model repeats itself.
func repeats(l limit.Tenant) limit.Repeats {
	r := l.Repeats
	r.After = cmp.Or(r.After, limit.DefaultRepeats)
	return r
}

// hidden is what models, and users, can ask for besides the request.
func hidden(c config.Condenser) engine.Hidden {
	return engine.Hidden{
		Request: c.Uses(func(c config.Condenser) bool { return c.AgentRequest }),
		Command: c.Uses(func(c config.Condenser) bool { return c.CondenseCommand }),
		Recall:  c.Uses(func(c config.Condenser) bool { return c.Recall }),
	}
}
