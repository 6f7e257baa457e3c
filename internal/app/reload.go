package app

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// Reload applies another configuration to new requests: tenants with their limits, condensers, models, session keys and
// the upstream. Everything that can fail is done before anything changes; after an error the old configuration stays in
// use. Settings that need a restart (listeners, store, limits, log) stay as they are. The log says what changed, by names.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if len(a.loaded.Tenants) > 0 && len(cfg.Tenants) == 0 {
		a.NotReloaded()
		return errOpens
	}
	asFound := cfg
	cfg, later := effective(a.config, cfg)
	live, err := a.live(cfg)
	if err != nil {
		a.NotReloaded()
		return fmt.Errorf("reload: %w", err)
	}
	a.metrics.RestartPending(len(later))
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.health.refused.Store(false)
	a.tookEffect(cfg)
	a.logReload(a.loaded.Differences(asFound), len(cfg.Tenants), later)
	a.loaded = asFound
	return nil
}

// errOpens is why a configuration that has lost its tenants, perhaps since it is still being written, is not taken up.
var errOpens = errors.New("reload: tenants: there are none any more, so that any key would pass: restart to open the proxy to all")

// hasLoaded reports whether a configuration is the one that was last applied.
func (a *App) hasLoaded(cfg *config.Config) bool {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return reflect.DeepEqual(a.loaded, cfg)
}

// logReload writes one line, a warning where something waits for a restart.
func (a *App) logReload(d config.Differences, tenants int, later []string) {
	slices.Sort(d.Keys)
	level := zap.InfoLevel
	if len(later) > 0 {
		level = zap.WarnLevel
	}
	fields := []zap.Field{zap.Int("tenants", tenants)}
	for _, part := range []struct {
		name  string
		names []string
	}{
		{"keys_changed", d.Keys}, {"tenants_added", d.Added}, {"tenants_removed", d.Removed}, {"tenants_changed", d.Changed},
		{"at_next_start", later},
	} {
		if len(part.names) > 0 {
			fields = append(fields, zap.Strings(part.name, part.names))
		}
	}
	a.log.Log(level, "configuration reloaded", fields...)
}

// NotReloaded records that a configuration could not be loaded: the last good one stays in use.
func (a *App) NotReloaded() {
	a.health.refused.Store(true)
	a.metrics.NotReloaded()
}

// tookEffect records that a configuration is in use, and names the tenants whose content is logged.
func (a *App) tookEffect(cfg *config.Config) {
	a.metrics.Reloaded(cfg.Hash(), time.Now())
	_ = a.calls.shelves.keep(cfg.EveryTenant()) // they are only watched
	a.calls.memory.Swap(routes(cfg, a.calls.transport))
	if keys := openKeys(cfg); len(keys) > 0 {
		a.log.Warn("no tenants are configured: any client that reaches this port spends the operator's keys. Configure tenants, or "+
			"limits.tenant.summaries_per_minute and the like", zap.Strings("keys", keys), zap.String("listen", cfg.Listen))
	}
	for _, t := range cfg.EveryTenant() {
		a.metrics.Tenant(t.Name)
		if t.LogContent {
			a.log.Warn("log_content is set: what this tenant's clients say, and what they are answered, goes into the log",
				zap.String("tenant", t.Name))
		}
	}
}

// effective returns the new configuration with those sections of the old one that are read only at start, and names what differs there.
func effective(old, now *config.Config) (_ *config.Config, later []string) {
	out := *now
	out.Listen, out.Admin, out.Store, out.Shutdown, out.Log = old.Listen, old.Admin, old.Store, old.Shutdown, old.Log
	out.Limits = old.Limits
	out.Limits.Tenant = now.Limits.Tenant
	later = out.Differences(now).Keys
	if longestCall(old) != longestCall(now) {
		later = append(later, "the longest summariser timeout")
	}
	return &out, later
}
