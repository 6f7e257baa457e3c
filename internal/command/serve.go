package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
)

// serve runs the proxy until ctx ends or a signal stops it.
func serve(ctx context.Context, args []string, out, errs io.Writer) error {
	from, err := parseServe(args, out, errs)
	if err != nil {
		return err
	}
	cfg, err := loadToServe(from, app.Check, nil)
	if err != nil {
		return usageError{err}
	}
	return serveConfig(ctx, cfg, from)
}

// parseServe parses the command line of serve.
func parseServe(args []string, out, errs io.Writer) (configSource, error) {
	fs := flags("serve", errs)
	file := fs.String("config", "", "configuration file, YAML or TOML")
	from := configSource{flags: map[string]string{}}
	for _, name := range []string{"listen", "upstream", "admin", "store", "log-format"} {
		fs.Func(name, "", func(value string) error { // usage describes it
			from.flags[name] = value
			return nil
		})
	}
	if err := parse(fs, args, out); err != nil {
		return configSource{}, err
	}
	if fs.NArg() > 0 {
		return configSource{}, usageError{fmt.Errorf("dewpoint: unexpected argument %q", fs.Arg(0))}
	}
	from.file = cmp.Or(*file, os.Getenv("DEWPOINT_CONFIG"), defaultFile(os.Getenv))
	return from, nil
}

// configSource is where the configuration is loaded from, at the start and at reloads.
type configSource struct {
	file  string
	flags map[string]string // that override the configuration, see source.Input
}

// load loads a configuration, and checks it further with check unless that is nil. If it fails, the error lists all problems, one per line, and
// load returns the part of the configuration that it could read, or nil.
func load(from configSource, check func(*config.Config) error) (*config.Config, error) {
	return loaded(source.Load(source.Input{File: from.file, Env: os.Environ(), Flags: from.flags, Check: check}))
}

// loadToServe is load, except that a team's file with problems refuses its tenant only. Its last good version is taken from inForce, which is nil
// at the start.
func loadToServe(from configSource, check func(*config.Config) error, inForce *config.Config) (*config.Config, error) {
	return loaded(source.Load(source.Input{
		File: from.file, Env: os.Environ(), Flags: from.flags, Check: check, RefuseTenants: true, InForce: inForce,
	}))
}

func loaded(cfg *config.Config, err error) (*config.Config, error) {
	if err != nil {
		return cfg, listed(err)
	}
	return cfg, nil
}

// listed returns an error that counts and lists the problems of a configuration. err contains them, one per line.
func listed(err error) error {
	lines, noun := strings.Split(err.Error(), "\n"), "problems"
	if len(lines) == 1 {
		noun = "problem"
	}
	return fmt.Errorf("configuration: %d %s\n  %s", len(lines), noun, strings.Join(lines, "\n  "))
}

func serveConfig(ctx context.Context, cfg *config.Config, from configSource) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // first of all, because an unhandled SIGHUP ends the process
	defer signal.Stop(hup)
	stop := make(chan os.Signal, 3)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	out, err := openOutput(cfg.Log, os.Stderr)
	if err != nil {
		return usageError{err}
	}
	defer out.close()
	log := out.log
	stdlog.SetOutput(io.Discard) // net/http logs unsolicited responses of an upstream, which may contain content
	app.LimitMemory(cfg, log.Logger)
	a, err := app.New(cfg, log.Logger, app.Options{Traced: true, Version: version, Revision: commit(), Watcher: out.watcher(), Config: from.file,
		Runs: cfg.Store.Type == config.StoreEmbedded}) // beside its file others find out where
	if err != nil {
		return err
	}
	log.OnLost(a.LinesLost)
	a.Start()
	background, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { app.TrimHeap(background) })
	out.serving(a, cfg, from.file)
	reloader := a.NewReloader(from.file, func(inForce *config.Config) (*config.Config, error) {
		return loadToServe(from, a.CheckReload, inForce)
	})
	work.Go(func() { reloader.Run(background, hup) })
	times := cfg.Shutdown
	select {
	case <-ctx.Done():
	case s := <-stop:
		if s == os.Interrupt {
			times.Delay = 0 // an interrupt comes from a keyboard, so there is no load balancer to wait for
		}
	case err = <-a.Failed():
		times.Delay = 0
	}
	cancel()
	work.Wait()
	return errors.Join(err, shutDown(a, log.Logger, times, stop))
}

// shutDown drains the proxy, waits for times.Delay while clients move to other replicas, waits up to times.Timeout for
// requests in progress, and closes the store. Another signal on stop ends both waits; one after that ends the process.
func shutDown(a *app.App, log *zap.Logger, times config.Shutdown, stop chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	log.Info("stopping", zap.Duration("delay", times.Delay), zap.Duration("timeout", times.Timeout))
	a.Drain()
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-stop:
			signal.Stop(stop)
			log.Info("stopping now: a second signal")
			cancel()
		}
	})
	select {
	case <-ctx.Done():
	case <-time.After(times.Delay):
	}
	limited, cancelStop := context.WithTimeout(ctx, times.Timeout)
	defer cancelStop()
	err := a.Stop(limited)
	if err == nil {
		log.Info("stopped")
	}
	return err
}
