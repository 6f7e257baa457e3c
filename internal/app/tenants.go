package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Check builds what a start builds, but opens no store, port or connection. Its error has each problem on a line of its own.
func Check(cfg *config.Config) error {
	out := newCalls(nil, zap.NewNop())
	_, err := buildTenants(cfg, out)
	err = errors.Join(err, out.knowledge.closeUnused(nil))
	if cfg.Store.Type == config.StoreRedis {
		_, redis := redisOptions(cfg.Store)
		err = errors.Join(err, redis)
	}
	return err
}

// buildTenants builds the tenants. If none are configured, it returns one that accepts any API key.
func buildTenants(cfg *config.Config, out *calls) (tenants []*proxy.Tenant, all error) {
	for _, c := range cfg.EveryTenant() {
		t, err := buildTenant(cfg, out, c)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		t.Anonymous = len(cfg.Tenants) == 0
		tenants = append(tenants, t)
	}
	return tenants, all
}

func buildTenant(cfg *config.Config, out *calls, c config.Tenant) (*proxy.Tenant, error) {
	upstream, chosen, limits := cfg.UpstreamFor(c), cfg.CondenserFor(c), cfg.LimitsFor(c)
	of := "" // where its keys are, for errors
	if len(cfg.Tenants) > 0 {
		of = "tenant " + c.Name + ": "
	}
	base, err := url.Parse(upstream.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("%supstream.base_url: %w", of, err)
	}
	build := builder{
		config: cfg, out: out, tenant: c.Name, upstream: upstream, base: base.String(), health: out.health.Tenant(), limits: limits,
	}
	build.rides = condense.NewRides(build.prices)
	condenser, err := build.condenser(of+"condenser", chosen)
	knowledge, unread := out.knowledge.open(of+"knowledge", c.Knowledge)
	if err = errors.Join(err, unread); err != nil {
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
			CondenseTimeout: condenseTimeout(cfg, chosen),
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
			return nil, errors.New(of + "api_keys: a key is neither a SHA-256 digest nor the name of a set environment variable")
		}
		t.Keys = append(t.Keys, sum)
	}
	return t, nil
}

// condenseTimeout returns how long a condensation may take: three calls of the slowest summariser, and no less than by default.
func condenseTimeout(cfg *config.Config, chosen config.Condenser) time.Duration {
	longest := cfg.Limits.SummariserTimeout
	for _, llm := range cfg.LLMs {
		longest = max(longest, llm.Timeout)
	}
	for _, stage := range chosen.Stages() {
		longest = max(longest, stage.Timeout)
	}
	return max(engine.DefaultCondenseTimeout, 3*longest)
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
