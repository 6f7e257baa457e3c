package app

import (
	"context"
	"errors"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// StoreFound is what a look at the configured store shows. The zero value stands for Redis, which has answered.
type StoreFound struct {
	Path     string // of the embedded store
	New      bool   // there is no file yet
	Sessions int
	Bytes    int64
}

// lookTimeout bounds how long Redis may take to answer.
const lookTimeout = 5 * time.Second

// LookAtStore reads the configured store without changing it. If a proxy has the embedded store, the error is a *RunningError.
func LookAtStore(ctx context.Context, cfg *config.Config) (StoreFound, error) {
	if cfg.Store.Type == config.StoreRedis {
		store, err := openStore(cfg, zap.NewNop())
		if err != nil {
			return StoreFound{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		return StoreFound{}, errors.Join(store.Ping(ctx), store.Close())
	}
	path, err := lookPath(cfg.Store)
	if err != nil {
		return StoreFound{}, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return StoreFound{Path: path, New: true}, nil
	}
	found, err := boltstore.Look(path)
	if errors.Is(err, boltstore.ErrInUse) {
		err = &RunningError{Path: path, announcement: announced(path)}
	}
	return StoreFound{Path: path, Sessions: found.Sessions, Bytes: found.Bytes}, err
}

// lookPath is storePath, except that it creates no folder.
func lookPath(c config.Store) (string, error) {
	if c.Path != "" {
		return c.Path, checkStorePath(c)
	}
	folder, err := platform.StateFolder("dewpoint", os.Getenv)
	if err != nil {
		return "", noDefaultPath(err)
	}
	return defaultStore(folder), nil
}
