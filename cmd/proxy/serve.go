package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/app"
)

// drain is how long requests under way may take after a signal to stop.
const drain = 30 * time.Second

// serve runs the proxy until ctx ends.
func serve(ctx context.Context, args []string, errs io.Writer) error {
	fs := flags("serve", errs)
	file := fs.String("config", "", "configuration file, YAML or TOML")
	fs.String("listen", "", "address of the data port (default 127.0.0.1:8080)")
	fs.String("upstream", "", "base URL to forward to (default https://api.openai.com/v1)")
	fs.String("admin", "", "address of the admin port (default 127.0.0.1:9090)")
	fs.String("store", "", "file of the embedded store (default dewpoint.db)")
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("dewpoint: unexpected argument %q", fs.Arg(0))}
	}
	cfg, err := load(*file, given(fs))
	if err != nil {
		return usageError{err}
	}
	return serveConfig(ctx, cfg)
}

// given gives the flags that override the configuration.
func given(fs *flag.FlagSet) map[string]string {
	keys := map[string]string{"listen": "listen", "upstream": "upstream", "admin": "admin.listen", "store": "store.path"}
	out := map[string]string{}
	fs.Visit(func(f *flag.Flag) {
		if key, ok := keys[f.Name]; ok {
			out[key] = f.Value.String()
		}
	})
	return out
}

func load(file string, overrides map[string]string) (*config.Config, error) {
	cfg, err := config.Load(config.Sources{
		File: file, Env: os.Environ(), Flags: overrides, Available: app.CondenserAvailable,
	})
	if err != nil {
		return nil, problems(err)
	}
	return cfg, nil
}

// problems lays out everything that is wrong with a configuration, a line each.
func problems(err error) error {
	found := config.Problems(err)
	if len(found) == 0 {
		return fmt.Errorf("configuration: %w", err)
	}
	lines := make([]string, 0, len(found)+1)
	lines = append(lines, fmt.Sprintf("configuration: %d problem(s)", len(found)))
	for _, p := range found {
		lines = append(lines, "  "+p.Error())
	}
	return errors.New(strings.Join(lines, "\n"))
}

func serveConfig(ctx context.Context, cfg *config.Config) error {
	log, err := app.NewLogger(cfg.Log)
	if err != nil {
		return usageError{err}
	}
	for _, key := range cfg.Unused {
		log.Warn("configuration key has no effect here", zap.String("key", key))
	}
	a, err := app.New(cfg, log)
	if err != nil {
		return err
	}
	a.Start()
	log.Info("serving", zap.String("listen", a.Addr()), zap.String("admin", a.AdminAddr()),
		zap.String("upstream", cfg.Upstream.BaseURL), zap.String("store", cfg.Store.Type))
	select {
	case <-ctx.Done():
		log.Info("stopping", zap.Duration("drain", drain))
	case err = <-a.Failed():
	}
	stopping, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	return errors.Join(err, a.Stop(stopping))
}
