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

func (o origin) input() source.Input {
	return source.Input{File: o.file, Env: os.Environ(), Flags: o.flags}
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

// load is source.Load, with problems that are told to a person.
func load(file string, overrides map[string]string) (*config.Config, error) {
	cfg, err := source.Load(origin{file, overrides}.input())
	if err != nil {
		return cfg, problems(err)
	}
	return cfg, nil
}

// problems lists everything that is wrong with a configuration, a line each.
func problems(err error) error {
	var found config.Problems
	if !errors.As(err, &found) {
		return fmt.Errorf("configuration: %w", err)
	}
	lines := make([]string, 0, len(found)+1)
	lines = append(lines, fmt.Sprintf("configuration: %d problem(s)", len(found)))
	for _, p := range found {
		lines = append(lines, "  "+p.Error())
	}
	return errors.New(strings.Join(lines, "\n"))
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
	var trimming sync.WaitGroup
	defer trimming.Wait()
	until, end := context.WithCancel(ctx)
	defer end()
	trimming.Go(func() { app.TrimHeap(until) })
	log.Info("serving", zap.String("listen", a.Addr()), zap.String("admin", a.AdminAddr()),
		zap.String("upstream", cfg.Upstream.BaseURL), zap.String("store", cfg.Store.Type))
	reloading := reloads(ctx, hup, a, from)
	var asked os.Signal = syscall.SIGTERM
	select {
	case <-ctx.Done():
	case asked = <-stop:
	case err = <-a.Failed():
		asked = os.Interrupt // there is no reason to wait
	}
	reloading()
	return errors.Join(err, ending{app: a, log: log.Logger, shutdown: cfg.Shutdown, again: stop}.run(asked))
}

// closeLog writes the rest of the log, and gives up after two seconds.
func closeLog(log *app.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	log.Close(ctx)
}

// reloads applies a changed configuration, on SIGHUP and when what it is read from changes. The returned function stops this and
// waits for it.
func reloads(ctx context.Context, hup <-chan os.Signal, a *app.App, from origin) func() {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	reloader := a.NewReloader(from.file, func() (*config.Config, error) { return load(from.file, from.flags) })
	work.Go(func() { reloader.Run(ctx, hup) })
	return func() {
		cancel()
		work.Wait()
	}
}
