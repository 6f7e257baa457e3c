package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
