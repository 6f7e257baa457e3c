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
	"github.com/dewpoint-proxy/dewpoint/internal/watch"
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

// Reloader applies the configuration when it is asked to, and when what it is read from changes. An invalid one changes nothing,
// and is logged once.
type Reloader struct {
	app     *App
	file    string
	load    func() (*config.Config, error)
	folders *watch.Folders
	changed chan struct{}
	dir     string // of tenants, as last read
	wrong   string // with what was last loaded; empty: nothing
	told    bool   // that changes may go unseen
}

// NewReloader makes one for a file, which may be empty, and what loads it: with an error comes what could be read, or nil.
func (a *App) NewReloader(file string, load func() (*config.Config, error)) *Reloader {
	return &Reloader{app: a, file: file, load: load, changed: make(chan struct{}, 1), dir: a.config.TenantsDir}
}

// Run reloads until ctx ends.
func (r *Reloader) Run(ctx context.Context, asked <-chan os.Signal) {
	if w, err := watch.New(); err != nil {
		r.unwatched(err)
	} else {
		r.folders = w
		w.Start(r.notify)
		defer func() { _ = w.Close() }()
	}
	r.look(false) // it may have changed since it was loaded
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			r.look(true)
		case <-r.changed:
			r.look(false)
		}
	}
}

func (r *Reloader) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// look loads the configuration, and applies one that differs, or that was asked for.
func (r *Reloader) look(asked bool) {
	r.watch()
	cfg, err := r.load()
	if cfg != nil && r.dir != cfg.TenantsDir {
		r.dir = cfg.TenantsDir
		r.notify() // watch it, since what is wrong may be corrected there, and look what changed meanwhile
	}
	if err == nil {
		if !asked && r.wrong == "" && r.app.hasLoaded(cfg) {
			return
		}
		err = r.app.Reload(cfg)
	}
	switch {
	case err == nil:
		r.wrong = ""
	case asked || r.wrong != err.Error():
		r.wrong = err.Error()
		r.app.NotReloaded()
		r.app.log.Error("configuration not reloaded: the last good one stays", zap.Error(err))
	}
}

// watch watches what is to be read next, and nothing else: a link may lead elsewhere by now.
func (r *Reloader) watch() {
	if r.folders == nil {
		return
	}
	r.folders.Clear()
	for _, folder := range r.readFrom() {
		if err := r.folders.Add(folder); err != nil {
			r.unwatched(err)
		}
	}
}

// readFrom gives the folder of the file, that of tenants with those in it, and the one that this is in: it may be removed or be a link, and
// come back.
func (r *Reloader) readFrom() (folders []string) {
	if r.file != "" {
		folders = append(folders, filepath.Dir(r.file))
	}
	if r.dir == "" {
		return folders
	}
	folders = append(folders, filepath.Dir(filepath.Clean(r.dir)), r.dir)
	entries, _ := os.ReadDir(r.dir) // what loads it tells what is wrong
	for _, entry := range entries {
		path := filepath.Join(r.dir, entry.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			folders = append(folders, path)
		}
	}
	return folders
}

// unwatched tells, once, that changes may go unseen. That a folder is not there is told by what loads it.
func (r *Reloader) unwatched(err error) {
	if !r.told && !errors.Is(err, fs.ErrNotExist) {
		r.told = true
		r.app.log.Warn("the configuration is not watched; send SIGHUP after a change", zap.Error(err))
	}
}
