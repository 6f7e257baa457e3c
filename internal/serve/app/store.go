package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// openStore opens the configured store. It does not fail if Redis is unavailable: requests are forwarded unchanged until
// Redis can be reached.
func openStore(cfg *config.Config, log *zap.Logger) (session.Backend, error) {
	keys, err := seal.New(cfg.Store.Encryption.Active, cfg.Store.Encryption.Decoded())
	if err != nil {
		return nil, fmt.Errorf("open store.encryption: %w", err)
	}
	if cfg.Store.Type == config.StoreRedis {
		o, err := redisOptions(cfg.Store)
		if err != nil {
			return nil, err
		}
		return records.New(redisstore.Open(o), records.Options{Content: cfg.Store.Content, Keys: keys}), nil
	}
	path, err := storePath(cfg.Store)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(formerPath); err == nil && cfg.Store.Path == "" {
		log.Warn("state is no longer kept in the current folder, and the file there is not used. Name it with --store, or move it",
			zap.String("found", formerPath), zap.String("store", path))
	}
	store, err := boltstore.Open(boltstore.Options{
		Path: path, TTL: cfg.Store.TTL, MaxSize: int64(cfg.Store.MaxSize), Content: cfg.Store.Content,
		Keys: keys, Warn: func(message string, err error) { log.Error(message, zap.Error(err)) },
	})
	if errors.Is(err, boltstore.ErrInUse) {
		return nil, &RunningError{Path: path, announcement: announced(path)}
	}
	if err != nil {
		return nil, fmt.Errorf("open store.path: %w", err)
	}
	return store, nil
}

// formerPath is where the embedded store was by default: in the current folder.
const formerPath = "dewpoint.db"

// storePath returns the path of the embedded store's file. If none is configured, it is in the user's state folder, which is created.
func storePath(c config.Store) (string, error) {
	if c.Path != "" {
		return c.Path, nil
	}
	folder, err := platform.StateFolder("dewpoint", os.Getenv)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return "", noDefaultPath(err)
	}
	return defaultStore(folder), nil
}

// defaultStore returns the file in the user's state folder.
func defaultStore(folder string) string { return filepath.Join(folder, "state.db") }

// checkStorePath checks that the embedded store's file can be created. It creates nothing.
func checkStorePath(c config.Store) error {
	if c.Path != "" {
		return folderOf("store.path", c.Path)
	}
	if _, err := platform.StateFolder("dewpoint", os.Getenv); err != nil {
		return noDefaultPath(err)
	}
	return nil
}

func noDefaultPath(err error) error {
	return fmt.Errorf("store.path: is not set, and the default cannot be used: %w: name a file", err)
}

// StorePath returns the file of the embedded store, "" for another store.
func (a *App) StorePath() string {
	if a.config.Store.Type != config.StoreEmbedded {
		return ""
	}
	path, _ := storePath(a.config.Store) // New has opened it
	return path
}

// Sessions counts the stored sessions, up to limit.
func (a *App) Sessions(ctx context.Context, limit int) (int, error) {
	page, err := a.health.store.Sessions(ctx, session.SessionQuery{Limit: limit})
	return len(page.Sessions), err
}

// sizeOf returns a function that reads the size of an embedded store. It returns nil for other stores.
func sizeOf(backend session.Backend, limit int64) func() (observe.StoreSize, bool) {
	store, embedded := backend.(*boltstore.Store)
	if !embedded {
		return nil
	}
	return func() (observe.StoreSize, bool) {
		size := observe.StoreSize{Limit: limit}
		err := session.Recover(func() (err error) {
			size.Records, size.File, err = store.Size()
			return err
		})
		return size, err == nil
	}
}

func redisOptions(c config.Store) (redisstore.Options, error) {
	r, err := c.Redis.Endpoint()
	if err != nil {
		return redisstore.Options{}, fmt.Errorf("store.redis.url: %w", err)
	}
	o := redisstore.Options{
		Addrs: r.Addrs, Username: r.Username, Password: r.Password.Reveal(), DB: r.DB,
		MasterName: r.MasterName, SentinelUsername: r.SentinelUsername, SentinelPassword: r.SentinelPassword.Reveal(),
		Cluster: r.Cluster, TTL: c.TTL, Timeout: c.Timeout / 2,
	}
	if r.TLS {
		o.TLS, err = redisTLS(r)
	}
	return o, err
}

func redisTLS(r config.Redis) (_ *tls.Config, err error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.TLSServerName}
	if r.TLSCert != "" {
		own, unread := tls.LoadX509KeyPair(r.TLSCert, r.TLSKey)
		if unread != nil {
			err = fmt.Errorf("store.redis.tls_cert: %w: check both files, their names and permissions", unread)
		}
		conf.Certificates = []tls.Certificate{own}
	}
	if r.TLSCA == "" {
		return conf, err
	}
	pem, unread := os.ReadFile(r.TLSCA) // the operator names the file
	if unread != nil {
		return nil, errors.Join(err, fmt.Errorf("store.redis.tls_ca: %w: check its name and permissions", unread))
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		err = errors.Join(err, fmt.Errorf("store.redis.tls_ca: %s contains no PEM certificate: name a file that does", r.TLSCA))
	}
	return conf, err
}
