package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/watch"
)

// Reload applies a configuration to new requests: tenants with their limits, condensers, models, session keys and the
// upstream. Everything that can fail happens before anything changes. On error the old configuration stays in use. Settings
// that need a restart (listeners, store, limits, log) keep their values. Reload logs the names of what changed.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if len(a.loaded.Tenants) > 0 && len(cfg.Tenants) == 0 {
		a.NotReloaded()
		return errTenantsGone
	}
	loaded := cfg
	cfg, later := effective(a.config, loaded)
	live, err := a.live(cfg)
	if err != nil {
		a.NotReloaded()
		return fmt.Errorf("reload: %w", err)
	}
	a.metrics.RestartPending(len(later))
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.health.refused.Store(false)
	a.configApplied(cfg)
	a.logReload(a.loaded.Differences(loaded), len(cfg.Tenants), later)
	a.loaded = loaded
	return nil
}

// errTenantsGone rejects a configuration that no longer has tenants. It may be incomplete because it is still being written.
var errTenantsGone = errors.New("reload: tenants: none are left, so that any key would pass: restart to open the proxy to everyone")

// isLoaded reports whether cfg equals the configuration applied last.
func (a *App) isLoaded(cfg *config.Config) bool {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return reflect.DeepEqual(a.loaded, cfg)
}

// logReload logs a reload, as a warning if part of it needs a restart.
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

// NotReloaded records that a configuration could not be loaded or applied. The last good one stays in use.
func (a *App) NotReloaded() {
	a.health.refused.Store(true)
	a.metrics.NotReloaded()
}

// configApplied updates what depends on the configuration in force, and logs its risks: open keys and logged content.
func (a *App) configApplied(cfg *config.Config) {
	a.metrics.Reloaded(cfg.Hash(), time.Now())
	a.calls.knowledge.forgetUnused(cfg.EveryTenant())
	a.calls.memory.Swap(routes(cfg, a.calls.transport))
	if keys := openKeys(cfg); len(keys) > 0 {
		a.log.Warn("no tenants are configured: any client that reaches this port spends the operator's keys. Configure tenants, or "+
			"limits.tenant.summaries_per_minute and the like", zap.Strings("keys", keys), zap.String("listen", cfg.Listen))
	}
	for _, t := range cfg.EveryTenant() {
		a.metrics.Tenant(t.Name)
		if t.LogContent {
			a.log.Warn("log_content is set: this tenant's requests and answers are written to the log", zap.String("tenant", t.Name))
		}
	}
}

// effective returns the new configuration with the sections of the old one that are read only at start. later names the
// differences in those sections, which take effect at the next start.
func effective(old, now *config.Config) (_ *config.Config, later []string) {
	out := *now
	out.Listen, out.Admin, out.Store, out.Shutdown, out.Log = old.Listen, old.Admin, old.Store, old.Shutdown, old.Log
	out.Limits = old.Limits
	out.Limits.Tenant = now.Limits.Tenant
	return &out, out.Differences(now).Keys
}

// Reloader reloads the configuration on request and when its files change. An invalid configuration changes nothing and is
// logged once.
type Reloader struct {
	app        *App
	files      func(tenantsDir string) []string
	load       func() (*config.Config, error)
	tenantsDir string // as loaded last
	lastError  string // of the last load or reload; empty: it succeeded
}

// NewReloader returns a reloader. files lists the files of a configuration with this tenants_dir. load reads the configuration; if it
// fails, it may return the part that it could read.
func (a *App) NewReloader(files func(tenantsDir string) []string, load func() (*config.Config, error)) *Reloader {
	return &Reloader{app: a, files: files, load: load, tenantsDir: a.config.TenantsDir}
}

// Run reloads until ctx ends: on each signal, and when files change.
func (r *Reloader) Run(ctx context.Context, signals <-chan os.Signal) {
	files := watch.New(func() []string { return r.files(r.tenantsDir) })
	r.reload(false) // the files may have changed since they were loaded
	ticker := time.NewTicker(watch.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			r.reload(true)
		case <-ticker.C:
			if files.Changed() {
				r.reload(false)
			}
		}
	}
}

// reload loads the configuration and applies it if it has changed, or in any case if forced.
func (r *Reloader) reload(forced bool) {
	cfg, err := r.load()
	if cfg != nil {
		r.tenantsDir = cfg.TenantsDir
	}
	if err == nil {
		if !forced && r.lastError == "" && r.app.isLoaded(cfg) {
			return
		}
		err = r.app.Reload(cfg)
	}
	switch {
	case err == nil:
		r.lastError = ""
	case forced || r.lastError != err.Error():
		r.lastError = err.Error()
		r.app.NotReloaded()
		r.app.log.Error("configuration not reloaded: the last good one stays", zap.Error(err))
	}
}
