package app

import (
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Reload puts another configuration in force: tenants, condensers, limits of tenants, models, session keys and the upstream, for the
// requests that come from now on. All that can fail is done before anything changes; an error leaves everything as it
// was. What needs a restart (listeners, store, limits, log) stays, and is named in the log.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	later := fixed(a.config, cfg)
	cfg = kept(a.config, cfg)
	live, err := a.live(cfg)
	if err != nil {
		a.NotReloaded()
		return fmt.Errorf("reload: %w", err)
	}
	for _, key := range later {
		a.log.Warn("this key takes effect at the next start", zap.String("key", key))
	}
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.health.refused.Store(false)
	a.tookEffect(cfg)
	a.log.Info("configuration reloaded", zap.Int("tenants", len(cfg.Tenants)))
	return nil
}

// NotReloaded notes that a configuration could not be loaded: the last good one stays in force.
func (a *App) NotReloaded() {
	a.health.refused.Store(true)
	a.metrics.Reloaded(false, time.Now())
}

// tookEffect notes that a configuration is in force, and says whose content goes into the log.
func (a *App) tookEffect(cfg *config.Config) {
	a.metrics.Reloaded(true, time.Now())
	tenants := cfg.Tenants
	if len(tenants) == 0 {
		tenants = []config.Tenant{defaultTenantOf(cfg)}
	}
	for _, t := range tenants {
		a.metrics.Tenant(t.Name)
		if t.LogContent {
			a.log.Warn("log_content is set: what this tenant's clients say, and what they are answered, goes into the log",
				zap.String("tenant", t.Name))
		}
	}
}

// ofTheProcess is the limits that are not a tenant's.
func ofTheProcess(l config.Limits) config.Limits {
	l.Tenant = limit.Tenant{}
	return l
}

// kept is the new configuration with the sections of the old one that are read only at start: what will be in force.
func kept(old, now *config.Config) *config.Config {
	out, tenant := *now, now.Limits.Tenant
	out.Listen, out.Admin, out.Store, out.Shutdown, out.Log = old.Listen, old.Admin, old.Store, old.Shutdown, old.Log
	out.Limits = old.Limits
	out.Limits.Tenant = tenant
	return &out
}

// fixed names the sections that differ and are read only at start.
func fixed(old, now *config.Config) []string {
	var keys []string
	for key, differs := range map[string]bool{
		"listen":                         old.Listen != now.Listen,
		"admin":                          !reflect.DeepEqual(old.Admin, now.Admin),
		"store":                          !reflect.DeepEqual(old.Store, now.Store),
		"limits":                         ofTheProcess(old.Limits) != ofTheProcess(now.Limits),
		"shutdown":                       old.Shutdown != now.Shutdown,
		"log":                            old.Log != now.Log,
		"the longest summariser timeout": longestCall(old) != longestCall(now),
	} {
		if differs {
			keys = append(keys, key)
		}
	}
	return keys
}
