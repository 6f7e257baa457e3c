package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/watch"
)

// Reloader applies the configuration when it is asked to, and when what it is read from changes. An invalid one changes nothing,
// and is logged once.
type Reloader struct {
	app     *App
	file    string
	load    func() (*config.Config, error)
	folders *watch.Folders
	changed chan struct{}
	dir     string // of tenants, as last loaded
	wrong   string // with what was last loaded; empty: nothing
	told    bool   // that changes may go unseen
}

// NewReloader makes one for a file, which may be empty, and what loads it.
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
	if err == nil {
		if !asked && r.wrong == "" && r.app.hasLoaded(cfg) {
			return
		}
		err = r.app.Reload(cfg)
	}
	if err != nil {
		r.refuse(err, asked)
		return
	}
	r.wrong = ""
	if r.dir != cfg.TenantsDir {
		r.dir = cfg.TenantsDir
		r.notify() // watch it, and look what changed meanwhile
	}
}

func (r *Reloader) refuse(err error, asked bool) {
	if !asked && r.wrong == err.Error() {
		return
	}
	r.wrong = err.Error()
	r.app.NotReloaded()
	r.app.log.Error("configuration not reloaded: the last good one stays", zap.Error(err))
}

// watch watches the folder of the file, and that of tenants with the one it is in: it may be removed or be a link, and come back.
func (r *Reloader) watch() {
	var folders []string
	if r.file != "" {
		folders = append(folders, filepath.Dir(r.file))
	}
	if r.dir != "" {
		folders = append(folders, filepath.Dir(filepath.Clean(r.dir)), r.dir)
	}
	for _, folder := range folders {
		if r.folders == nil {
			return
		}
		if err := r.folders.Add(folder); err != nil {
			r.unwatched(err)
		}
	}
}

// unwatched tells, once, that changes may go unseen. That a folder is not there is told by what loads it.
func (r *Reloader) unwatched(err error) {
	if !r.told && !errors.Is(err, fs.ErrNotExist) {
		r.told = true
		r.app.log.Warn("the configuration is not watched; send SIGHUP after a change", zap.Error(err))
	}
}
