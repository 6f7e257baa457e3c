package app

import (
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// Reload applies another configuration to new requests: tenants with their limits, condensers, models, session keys and
// the upstream. Everything that can fail is done before anything changes; after an error the old configuration stays in
// use. Settings that need a restart (listeners, store, limits, log) stay as they are, and are named in the log.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	later := needRestart(a.config, cfg)
	cfg = effective(a.config, cfg)
	live, err := a.live(cfg)
	if err != nil {
		a.NotReloaded()
		return fmt.Errorf("reload: %w", err)
	}
	for _, key := range later {
		a.log.Warn("this key takes effect at the next start", zap.String("key", key))
	}
	a.metrics.RestartPending(len(later))
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.health.refused.Store(false)
	a.tookEffect(cfg)
	a.log.Info("configuration reloaded", zap.Int("tenants", len(cfg.Tenants)))
	return nil
}

// NotReloaded records that a configuration could not be loaded: the last good one stays in use.
func (a *App) NotReloaded() {
	a.health.refused.Store(true)
	a.metrics.NotReloaded()
}

// tookEffect records that a configuration is in use, and names the tenants whose content is logged.
func (a *App) tookEffect(cfg *config.Config) {
	a.metrics.Reloaded(cfg.Hash(), time.Now())
	a.shelves.keep(cfg)
	if keys := openKeys(cfg); len(keys) > 0 {
		a.log.Warn("no tenants are configured: any client that reaches this port spends the operator's keys. Configure tenants, or "+
			"limits.tenant.summaries_per_minute and the like", zap.Strings("keys", keys), zap.String("listen", cfg.Listen))
	}
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

// processLimits returns the limits that are not a tenant's.
func processLimits(l config.Limits) config.Limits {
	l.Tenant = limit.Tenant{}
	return l
}

// effective returns the new configuration with those sections of the old one that are read only at start.
func effective(old, now *config.Config) *config.Config {
	out, tenant := *now, now.Limits.Tenant
	out.Listen, out.Admin, out.Store, out.Shutdown, out.Log = old.Listen, old.Admin, old.Store, old.Shutdown, old.Log
	out.Limits = old.Limits
	out.Limits.Tenant = tenant
	return &out
}

// needRestart names the sections that differ and are read only at start.
func needRestart(old, now *config.Config) []string {
	var keys []string
	for key, differs := range map[string]bool{
		"listen":                         old.Listen != now.Listen,
		"admin":                          !reflect.DeepEqual(old.Admin, now.Admin),
		"store":                          !reflect.DeepEqual(old.Store, now.Store),
		"limits":                         processLimits(old.Limits) != processLimits(now.Limits),
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
