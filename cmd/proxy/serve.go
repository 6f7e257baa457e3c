package main

import (
	"context"
	"errors"
	"flag"
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
	"github.com/dewpoint-proxy/dewpoint/internal/app"
)

// serve runs the proxy until ctx ends or a signal tells it to stop.
func serve(ctx context.Context, args []string, errs io.Writer) error {
	sources, err := sourcesOf(args, errs)
	if err != nil {
		return err
	}
	cfg, err := load(sources.file, sources.flags)
	if err != nil {
		return usageError{err}
	}
	return serveConfig(ctx, cfg, sources)
}

// sourcesOf reads the command line of serve.
func sourcesOf(args []string, errs io.Writer) (origin, error) {
	fs := flags("serve", errs)
	file := fs.String("config", "", "configuration file, YAML or TOML")
	fs.String("listen", "", "address of the data port (default 127.0.0.1:8080)")
	fs.String("upstream", "", "base URL to forward to (default https://api.openai.com/v1)")
	fs.String("admin", "", "address of the admin port (default 127.0.0.1:9090)")
	fs.String("store", "", "file of the embedded store (default dewpoint.db)")
	if err := parse(fs, args); err != nil {
		return origin{}, err
	}
	if fs.NArg() > 0 {
		return origin{}, usageError{fmt.Errorf("dewpoint: unexpected argument %q", fs.Arg(0))}
	}
	sources := origin{file: *file, flags: given(fs)}
	if sources.file == "" {
		sources.file = os.Getenv("DEWPOINT_CONFIG")
	}
	return sources, nil
}

// origin is where the configuration came from, to be read again.
type origin struct {
	file  string
	flags map[string]string
}

// given returns the flags that override the configuration, by key.
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

// load is source.Load, with problems that are told to a person: everything that is wrong, a line each.
func load(file string, flags map[string]string) (*config.Config, error) {
	cfg, err := source.Load(source.Input{File: file, Env: os.Environ(), Flags: flags})
	var found config.Problems
	if !errors.As(err, &found) {
		return cfg, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "configuration: %d problem(s)", len(found))
	for _, p := range found {
		text.WriteString("\n  " + p.Error())
	}
	return cfg, errors.New(text.String())
}

func serveConfig(ctx context.Context, cfg *config.Config, from origin) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // before anything else: unhandled, the signal would end the process
	defer signal.Stop(hup)
	stop := make(chan os.Signal, 3)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	log, err := app.NewLogger(cfg.Log, os.Stderr)
	if err != nil {
		return usageError{err}
	}
	defer closeLog(log)
	for _, key := range cfg.Unused {
		log.Warn("configuration key has no effect here", zap.String("key", key))
	}
	stdlog.SetOutput(io.Discard) // net/http would write there what an upstream sends unasked, which may be content
	app.LimitMemory(cfg, log.Logger)
	app.PaceGC()
	a, err := app.New(cfg, log.Logger, app.Options{Traced: true, Version: version, Revision: commit()})
	if err != nil {
		return err
	}
	log.Lost(a.LinesLost)
	a.Start()
	until, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { app.TrimHeap(until) })
	log.Info("serving", zap.String("listen", a.Addr()), zap.String("admin", a.AdminAddr()),
		zap.String("upstream", cfg.Upstream.BaseURL), zap.String("store", cfg.Store.Type))
	reloader := a.NewReloader(from.file, func() (*config.Config, error) { return load(from.file, from.flags) })
	work.Go(func() { reloader.Run(until, hup) })
	var asked os.Signal = syscall.SIGTERM
	select {
	case <-ctx.Done():
	case asked = <-stop:
	case err = <-a.Failed():
		asked = os.Interrupt // there is no reason to wait
	}
	end()
	work.Wait()
	return errors.Join(err, ending{app: a, log: log.Logger, shutdown: cfg.Shutdown, again: stop}.run(asked))
}

// closeLog writes the rest of the log, and gives up after two seconds.
func closeLog(log *app.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	log.Close(ctx)
}

// ending stops the proxy in order.
type ending struct {
	app      *app.App
	log      *zap.Logger
	shutdown config.Shutdown
	again    chan os.Signal // a second signal cuts the wait short; a third ends the process
}

// run drains the proxy, waits until clients have gone elsewhere, finishes requests under way and closes the store. An
// interrupt comes from the keyboard: there is no balancer to wait for.
func (e ending) run(asked os.Signal) error {
	delay := e.shutdown.Delay
	if asked == os.Interrupt {
		delay = 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	var hurry sync.WaitGroup
	defer hurry.Wait()
	defer cancel()
	e.log.Info("stopping", zap.Duration("delay", delay), zap.Duration("timeout", e.shutdown.Timeout))
	e.app.Drain()
	hurry.Go(func() {
		select {
		case <-ctx.Done():
		case <-e.again:
			signal.Stop(e.again)
			e.log.Info("stopping now: a second signal")
			cancel()
		}
	})
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
	limited, over := context.WithTimeout(ctx, e.shutdown.Timeout)
	defer over()
	err := e.app.Stop(limited)
	if err == nil {
		e.log.Info("stopped")
	}
	return err
}
