package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// Proxy is the real proxy, running in this process on a loopback port, with a temporary store.
type Proxy struct {
	app *app.App
	cfg *config.Config
	dir string
}

// StartProxy starts a proxy with a configuration, except that it sets the addresses and the store itself. Requests, and calls of every model in
// llms, go to upstream, a base URL with its version. Each request waits for its summary, so that the results of a replay do not depend on its
// speed. Proxies can share encoders; if encoders is nil, the proxy has its own.
func StartProxy(cfg config.Config, upstream string, encoders *tokenize.Registry) (_ *Proxy, err error) {
	p := &Proxy{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start proxy: %w", err), p.Close())
		}
	}()
	if p.dir, err = os.MkdirTemp("", "dewpoint-"); err != nil {
		return nil, err
	}
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", ""
	cfg.Upstream.BaseURL = upstream
	cfg.Store.Type, cfg.Store.Path, cfg.Store.Timeout = config.StoreEmbedded, p.StorePath(), time.Minute
	cfg.LLMs = maps.Clone(cfg.LLMs)
	for name, llm := range cfg.LLMs {
		llm.BaseURL = upstream
		cfg.LLMs[name] = llm
	}
	cfg.Limits.StreamKeepAlive = 0 // a stream kept alive begins before its headers can report condensations
	cfg.Condenser, cfg.Tenants = waiting(cfg.Condenser), slices.Clone(cfg.Tenants)
	for i := range cfg.Tenants {
		if c := cfg.Tenants[i].Condenser; c != nil {
			cfg.Tenants[i].Condenser = new(waiting(*c))
		}
	}
	p.cfg = &cfg
	if p.app, err = app.New(p.cfg, zap.NewNop(), app.Options{Encoders: encoders}); err != nil {
		return nil, err
	}
	p.app.Start()
	return p, nil
}

// URL returns the base URL for an agent, with its version.
func (p *Proxy) URL() string { return "http://" + p.app.Addr() + "/v1" }

// StorePath returns the file of the store, which may be opened after Stop.
func (p *Proxy) StorePath() string { return filepath.Join(p.dir, "replay.db") }

// Stop stops the proxy. It waits for connections, so clients should close theirs before. A second call does nothing.
func (p *Proxy) Stop() error {
	if p.app == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.app.Stop(ctx)
}

// Account returns what the proxy's own accounts say of all requests. It may be called after Stop.
func (p *Proxy) Account(ctx context.Context) (account.Comparison, error) {
	rows, err := app.ReadTotals(ctx, p.cfg, time.Now().AddDate(0, 0, -1), time.Now())
	if err != nil {
		return account.Comparison{}, fmt.Errorf("read accounts: %w", err)
	}
	report := account.NewReport("", "", nil, rows)
	return report.Total.USD, nil
}

// Close stops the proxy and removes the store.
func (p *Proxy) Close() error {
	err := p.Stop()
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}
