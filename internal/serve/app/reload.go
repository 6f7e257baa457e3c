package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/watch"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Reload applies a configuration to new requests: tenants with their limits, condensers, models, session keys and the
// upstream. Everything that can fail happens before anything changes. On error the old configuration stays in use. Settings
// that need a restart (listeners, store, limits, log) keep their values. Reload logs the names of what changed.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if !a.loaded.IsOpen() && cfg.IsOpen() {
		a.NotReloaded()
		return errTenantsGone
	}
	loaded := cfg
	cfg, later := effective(a.config, loaded)
	if cfg.HasTeamsFiles() && !cfg.Admin.Locked() {
		a.NotReloaded()
		return errTokenLater
	}
	err := checkLoops(cfg, a.Addr(), a.AdminAddr()) // the actual addresses: the system may have chosen the ports
	var live proxy.Live
	if err == nil {
		live, err = a.live(cfg)
	}
	if err != nil {
		a.NotReloaded()
		return fmt.Errorf("reload: %w", err)
	}
	a.metrics.RestartPending(len(later))
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.health.refused.Store(false)
	a.configApplied(cfg)
	a.logReload(a.loaded.Differences(loaded), cfg, later)
	a.loaded = loaded
	return nil
}

// errTenantsGone rejects a configuration that no longer has tenants. It may be incomplete because it is still being written.
var errTenantsGone = errors.New("reload: tenants: none are left, so that any key would pass: restart to open the proxy to everyone")

// errTokenLater rejects files of teams while the admin port, which is configured only at start, serves without a token.
var errTokenLater = errors.New("reload: admin.token: takes effect only at a restart, and teams may write the files of tenants_dir only with a token: " +
	"restart, or set tenants_trusted to true if you trust every file")

// inForce returns the configuration applied last.
func (a *App) inForce() *config.Config {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return a.loaded
}

// isLoaded reports whether cfg equals the configuration applied last, apart from warnings, which name lines.
func (a *App) isLoaded(cfg *config.Config) bool {
	before, now := *a.inForce(), *cfg
	before.Warnings, now.Warnings = nil, nil
	return reflect.DeepEqual(before, now)
}

// logReload logs a reload, as a warning if part of it needs a restart or tenants are refused.
func (a *App) logReload(d config.Differences, cfg *config.Config, later []string) {
	slices.Sort(d.Keys)
	level := zap.InfoLevel
	if len(later)+len(cfg.Refused) > 0 {
		level = zap.WarnLevel
	}
	fields := []zap.Field{zap.Int("tenants", len(cfg.Tenants))}
	add := func(name string, names []string) {
		if len(names) > 0 {
			fields = append(fields, zap.Strings(name, names))
		}
	}
	add("keys_changed", d.Keys)
	add("tenants_added", d.Added)
	add("tenants_removed", d.Removed)
	add("tenants_changed", d.Changed)
	var refused []string
	for _, t := range cfg.Refused {
		refused = append(refused, nameOf(t))
	}
	add("tenants_refused", refused)
	add("at_next_start", later)
	a.log.Log(level, "configuration reloaded", fields...)
}

// NotReloaded records that a configuration could not be loaded or applied. The last good one stays in use.
func (a *App) NotReloaded() {
	a.health.refused.Store(true)
	a.metrics.NotReloaded()
}

// configApplied updates what depends on the configuration in force, and logs its warnings and risks: open keys and logged content.
func (a *App) configApplied(cfg *config.Config) {
	a.metrics.Reloaded(cfg.Hash(), time.Now())
	a.refused.replace(cfg.Refused, a.log)
	_ = a.calls.knowledge.closeUnused(cfg.EveryTenant()) // closing only ends their watches
	a.calls.memory.Swap(a.calls.routes(cfg))
	a.calls.confined.closeEarlier() // new requests no longer use them
	for _, w := range cfg.Warnings {
		a.log.Warn("configuration warning", zap.String("key", w.Key), zap.String("warning", w.Message), zap.String("origin", w.Origin))
	}
	if keys := openKeys(cfg); len(keys) > 0 {
		a.log.Warn("no tenants are configured: any client that reaches this port spends the operator's keys. Configure tenants, or "+
			"limits.tenant.summaries_per_minute and the like", zap.Strings("keys", keys), zap.String("listen", cfg.Listen))
	}
	for _, t := range cfg.EveryTenant() {
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
	file       string
	load       func(inForce *config.Config) (*config.Config, error)
	folders    *watch.Folders // nil: files cannot be watched
	changed    chan struct{}
	tenantsDir string // as loaded last
	lastError  string // of the last load or reload; empty: it succeeded
	warned     bool   // that files are not watched
}

// NewReloader returns a reloader. file is the configuration file, or "". load reads the configuration, and is given the one in
// force; if it fails, it may return the part that it could read.
func (a *App) NewReloader(file string, load func(inForce *config.Config) (*config.Config, error)) *Reloader {
	return &Reloader{app: a, file: file, load: load, changed: make(chan struct{}, 1), tenantsDir: a.config.TenantsDir}
}

// Run reloads until ctx ends: on each signal, and when files change.
func (r *Reloader) Run(ctx context.Context, signals <-chan os.Signal) {
	if w, err := watch.New(); err != nil {
		r.warnUnwatched(err)
	} else {
		r.folders = w
		w.Start(r.notify)
		defer func() { _ = w.Close() }()
	}
	r.reload(false) // the files may have changed since they were loaded
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			r.reload(true)
		case <-r.changed:
			r.reload(false)
		}
	}
}

func (r *Reloader) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// reload loads the configuration and applies it if it has changed, or in any case if forced.
func (r *Reloader) reload(forced bool) {
	r.updateWatches()
	cfg, err := r.load(r.app.inForce())
	if cfg != nil && r.tenantsDir != cfg.TenantsDir {
		r.tenantsDir = cfg.TenantsDir
		r.notify() // reload once more with the new folder watched: it may have changed in between
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

// updateWatches watches exactly the folders that the next load reads. It resolves symbolic links again, which may have changed.
func (r *Reloader) updateWatches() {
	if r.folders == nil {
		return
	}
	r.folders.Clear()
	for _, folder := range r.watchedFolders() {
		if err := r.folders.Add(folder); err != nil {
			r.warnUnwatched(err)
		}
	}
}

// watchedFolders returns the folder of the file, the tenants' folder with its subfolders, and the parent of the tenants'
// folder, which may be removed or replaced by a link.
func (r *Reloader) watchedFolders() (folders []string) {
	if r.file != "" {
		folders = append(folders, filepath.Dir(r.file))
	}
	if r.tenantsDir == "" {
		return folders
	}
	folders = append(folders, filepath.Dir(filepath.Clean(r.tenantsDir)), r.tenantsDir)
	entries, _ := os.ReadDir(r.tenantsDir) // load reports errors
	for _, entry := range entries {
		path := filepath.Join(r.tenantsDir, entry.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			folders = append(folders, path)
		}
	}
	return folders
}

// warnUnwatched logs, once, that changes may go unnoticed. It ignores a missing folder, which load reports.
func (r *Reloader) warnUnwatched(err error) {
	if !r.warned && !errors.Is(err, fs.ErrNotExist) {
		r.warned = true
		r.app.log.Warn("the configuration is not watched; send SIGHUP after a change", zap.Error(err))
	}
}
