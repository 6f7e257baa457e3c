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

// buildTenants builds the tenants. If none are configured, it returns one that accepts any API key.
func buildTenants(cfg *config.Config, out *calls) ([]*proxy.Tenant, error) {
	var tenants []*proxy.Tenant
	for _, c := range cfg.EveryTenant() {
		t, err := buildTenant(cfg, out, c)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", c.Name, err)
		}
		t.Anonymous = len(cfg.Tenants) == 0
		tenants = append(tenants, t)
	}
	return tenants, nil
}

func buildTenant(cfg *config.Config, out *calls, c config.Tenant) (*proxy.Tenant, error) {
	upstream, chosen, limits := cfg.UpstreamFor(c), cfg.CondenserFor(c), cfg.LimitsFor(c)
	base, err := url.Parse(upstream.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream.base_url: %w", err)
	}
	build := builder{
		config: cfg, out: out, tenant: c.Name, upstream: upstream, base: base.String(), health: out.health.Tenant(), limits: limits,
	}
	build.rides = condense.NewRides(build.prices)
	condenser, err := build.condenser("condenser", chosen)
	if err != nil {
		return nil, err
	}
	knowledge, err := out.knowledge.open(c.Knowledge)
	if err != nil {
		return nil, err
	}
	deadline, never := chosen.Waits()
	compacts := map[string]proxy.Compacts{config.CompactionPass: proxy.CompactsItself, config.CompactionAnswer: proxy.CompactsNot}
	repeats := limits.Repeats
	repeats.After = cmp.Or(repeats.After, limit.DefaultRepeats)
	t := &proxy.Tenant{
		Tenant: engine.Tenant{
			Name: c.Name, Condenser: condenser, Observe: cfg.Observes(c), Deadline: deadline, Never: never, Ahead: chosen.Prepares(),
			Holdout: c.Holdout, Hidden: hidden(chosen), Knowledge: knowledge, Repeats: repeats, Promise: out.promise(c),
		},
		Notify: c.Notify, LogContent: c.LogContent, Limits: limits, Draw: out.drawFor(limits), Cooling: build.health.Cooling,
		Upstream: proxy.UpstreamConfig{
			BaseURL: base, APIKey: upstream.APIKey.Reveal(), Timeout: upstream.Timeout, AlternateRoles: upstream.AlternateRoles,
			Compacts: compacts[upstream.Compaction],
		},
	}
	if c.KeepWarm {
		t.Warm = build.warm(c)
	}
	for _, k := range c.APIKeys {
		sum, ok := k.Digest()
		if !ok {
			return nil, errors.New("api_keys: a key is neither a SHA-256 digest nor the name of a set environment variable")
		}
		t.Keys = append(t.Keys, sum)
	}
	return t, nil
}

// hidden returns the hidden tools and commands that a condenser's stages enable.
func hidden(c config.Condenser) (h engine.Hidden) {
	for _, stage := range c.Stages() {
		h.Request = h.Request || stage.AgentRequest
		h.Command = h.Command || stage.CondenseCommand
		h.Recall = h.Recall || stage.Recall
	}
	return h
}
