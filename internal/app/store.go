package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

const adminWait = 10 * time.Second

// openStore opens the configured store. A Redis that is away is no error: requests pass until it is back.
func openStore(cfg *config.Config) (session.Store, error) {
	keys, err := seal.New(cfg.Store.Encryption.Active, cfg.Store.Encryption.Decoded())
	if err != nil {
		return nil, fmt.Errorf("open store.encryption: %w", err)
	}
	if cfg.Store.Type == config.StoreRedis {
		return openRedis(cfg.Store, keys)
	}
	store, err := boltstore.Open(boltstore.Options{
		Path: cfg.Store.Path, TTL: cfg.Store.TTL, MaxSize: int64(cfg.Store.MaxSize), Content: cfg.Store.Content,
		Keys: keys,
	})
	if err != nil {
		return nil, fmt.Errorf("open store.path: %w", err)
	}
	return store, nil
}

func openRedis(c config.Store, keys *seal.Keys) (session.Store, error) {
	o := redisstore.Options{
		Addrs: c.Redis.Addrs, Username: c.Redis.Username, Password: c.Redis.Password.Reveal(), DB: c.Redis.DB,
		MasterName: c.Redis.MasterName, Cluster: c.Redis.Cluster, TTL: c.TTL, Content: c.Content, Keys: keys,
	}
	if c.Redis.TLS {
		conf, err := redisTLS(c.Redis.TLSCA)
		if err != nil {
			return nil, err
		}
		o.TLS = conf
	}
	store, err := redisstore.Open(o)
	if err != nil {
		return nil, fmt.Errorf("open store.redis: %w", err)
	}
	return store, nil
}

func redisTLS(ca string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(ca) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("store.redis.tls_ca: %w", err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("store.redis.tls_ca: %s holds no certificate in PEM form", ca)
	}
	return conf, nil
}
