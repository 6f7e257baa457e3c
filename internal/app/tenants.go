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

// buildTenants makes the tenants. Without any there is one that takes every key.
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
	told, err := out.shelves.of(c.Knowledge)
	if err != nil {
		return nil, err
	}
	deadline, never := chosen.Waits()
	compacts := map[string]proxy.Compacts{config.CompactionPass: proxy.CompactsItself, config.CompactionAnswer: proxy.CompactsNot}
	t := &proxy.Tenant{
		Tenant: engine.Tenant{Name: c.Name, Condenser: condenser, Observe: cfg.Observes(c), Deadline: deadline, Never: never, Ahead: chosen.Prepares(),
			Holdout: c.Holdout, Hidden: hidden(chosen), Knowledge: told, Repeats: limits.Repeats, Promise: out.promise(c)},
		Notify: c.Notify, LogContent: c.LogContent, Limits: limits, Draw: out.drawOf(limits), Cooling: build.health.Cooling,
		Upstream: proxy.UpstreamConfig{
			BaseURL: base, APIKey: upstream.APIKey.Reveal(), Timeout: upstream.Timeout, AlternateRoles: upstream.AlternateRoles,
			Compacts: compacts[upstream.Compaction],
		},
	}
	t.Repeats.After = cmp.Or(t.Repeats.After, limit.DefaultRepeats)
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

// hidden is what models, and users, can ask for besides the request.
func hidden(c config.Condenser) (h engine.Hidden) {
	for _, stage := range c.Stages() {
		h.Request, h.Command, h.Recall = h.Request || stage.AgentRequest, h.Command || stage.CondenseCommand, h.Recall || stage.Recall
	}
	return h
}
