package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/otlp"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Check builds what a start builds, but opens no store, port or connection. It may look up host names. It returns the problems as
// config.Problems.
func Check(cfg *config.Config) error {
	var spans, store error
	if otlp.Wanted(os.Getenv) {
		_, spans = otlp.FromEnv(os.Getenv)
	}
	if cfg.Store.Type == config.StoreRedis {
		_, store = redisOptions(cfg.Store)
	} else {
		store = checkStorePath(cfg.Store)
	}
	return checkTenants(cfg, spans, store, checkLoops(cfg, cfg.Listen, cfg.Admin.Listen))
}

// CheckReload is Check for what a reload applies. The addresses of the ports are the actual ones, which the system may have chosen.
func (a *App) CheckReload(cfg *config.Config) error {
	return checkTenants(cfg, checkLoops(cfg, a.Addr(), a.AdminAddr()))
}

// checkTenants builds the tenants, and returns errs and the errors of the tenants as config.Problems.
func checkTenants(cfg *config.Config, errs ...error) error {
	out := newCalls(nil, zap.NewNop())
	_, err := buildTenants(cfg, out)
	errs = append(errs, err, out.knowledge.closeUnused(nil))
	for _, t := range cfg.EveryTenant() {
		if !t.Kept { // as with its knowledge
			errs = append(errs, folderOf(keyOf(cfg, t)+"memory.file", t.Memory.File))
		}
	}
	var found config.Problems
	if err = errors.Join(errs...); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			key, message, _ := strings.Cut(line, ": ")
			if p := (config.Problem{Key: key, Message: message}); !slices.Contains(found, p) { // tenants that share a condenser have the same problem
				found = append(found, p)
			}
		}
	}
	return found.Err()
}

// keyOf returns the prefix of a tenant's configuration keys, empty for the default tenant.
func keyOf(cfg *config.Config, t config.Tenant) string {
	if t.Key != "" {
		return t.Key + "."
	}
	i := slices.IndexFunc(cfg.Tenants, func(c config.Tenant) bool { return c.Name == t.Name })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("tenants[%d].", i)
}

// folderOf checks that the folder of a file, if any, exists.
func folderOf(key, file string) error {
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("%s: %w: create the folder, or name another file", key, err)
	}
	return nil
}

// buildTenants builds the tenants. If none are configured, it returns one that accepts any API key.
func buildTenants(cfg *config.Config, out *calls) (tenants []*proxy.Tenant, all error) {
	out.confine(cfg)
	for _, c := range cfg.EveryTenant() {
		t, err := buildTenant(cfg, out, c)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		t.Anonymous = cfg.IsOpen()
		tenants = append(tenants, t)
	}
	return tenants, all
}

func buildTenant(cfg *config.Config, out *calls, c config.Tenant) (*proxy.Tenant, error) {
	chosen, limits, of := cfg.CondenserFor(c), cfg.LimitsFor(c), keyOf(cfg, c)
	build := builder{
		config: cfg, out: out, tenant: c.Name, of: c, through: out.transportOf(cfg, c), health: out.health.Tenant(), limits: limits,
	}
	upstream, providers, err := upstreams(cfg, c, build.through)
	if err != nil {
		return nil, err
	}
	build.reuse = condense.NewPromptReuse(build.prices)
	key := "condenser"
	if c.Condenser != nil {
		key = of + key
	}
	condenser, err := catalogue.Build(key, chosen, build)
	knowledge, unread := out.knowledge.open(of+"knowledge", c.Knowledge)
	if c.Kept && unread != nil { // its last good version is better than none, and is usually open still
		out.knowledge.log.Error("knowledge of a tenant whose last good version is in force cannot be read", zap.String("tenant", c.Name), zap.Error(unread))
		unread = nil
	}
	if err = errors.Join(err, unread); err != nil {
		return nil, err
	}
	deadline, never := chosen.Waits()
	t := &proxy.Tenant{
		Tenant: engine.Tenant{
			Name: c.Name, Condenser: condenser, Observe: cfg.Observes(c), Deadline: deadline, Never: never, Ahead: never || chosen.Prepares(),
			Holdout: compared(c), Hidden: hidden(chosen), Knowledge: knowledge, Promise: out.promise(c),
			CondenseTimeout: condenseTimeout(cfg, chosen),
		},
		Notify: c.Notify, Gateway: c.Gateway, LogContent: c.LogContent, ByPrice: chosen.Uses(catalogue.Settings.ByPrice), Limits: limits, Draw: out.drawFor(limits), Cooling: build.health.Cooling,
		Upstream: upstream, Providers: providers,
	}
	if c.Holdout.Condenser != nil {
		if t.Arm, err = build.strategy(of+"holdout.condenser", *c.Holdout.Condenser); err != nil {
			return nil, err
		}
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

// condenseTimeout returns how long a condensation may take: the time for three calls of the slowest summariser, but at least the default.
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
