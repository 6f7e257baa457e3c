package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
)

// hostName is the command by which run starts the proxy that runs of agents share. It is not for people.
const hostName = "run-host"

// exitBusy is its exit code if another process uses the state file.
const exitBusy = 3

// Bounds of a host's time: for the first run to begin, and to end after the last one has.
const (
	firstRun = 30 * time.Second
	hostStop = 10 * time.Second
)

// hostRuns serves runs of agents on free loopback ports until the last one has ended. It writes to out where others begin runs.
func hostRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	signal.Ignore(syscall.SIGHUP) // of the terminal that the first run was started from
	from, err := parseServe(args, out, errs)
	if err != nil {
		return err
	}
	from.flags["listen"] = "127.0.0.1:0"
	cfg, err := loadToServe(from, app.Check, nil)
	if err != nil {
		return usageError{err}
	}
	if cfg.Admin.Listen != "" {
		cfg.Admin.Listen = "127.0.0.1:0"
	}
	cfg.Log.Format, cfg.Shutdown.Delay, cfg.Shutdown.Timeout = config.FormatJSON, 0, min(cfg.Shutdown.Timeout, hostStop)
	lines, err := openOutput(cfg.Log, os.Stderr)
	if err != nil {
		return usageError{err}
	}
	defer lines.close()
	log := lines.log
	stdlog.SetOutput(io.Discard) // see serveConfig
	app.LimitMemory(cfg, log.Logger)
	a, err := app.New(cfg, log.Logger, app.Options{Traced: true, Version: version, Revision: commit(), Config: from.file, Runs: true, HoldPort: true})
	if running, is := errors.AsType[*app.RunningError](err); is {
		return exitError{exitBusy, running.Error()}
	}
	if err != nil {
		return err
	}
	log.OnLost(a.LinesLost)
	stop := make(chan os.Signal, 3)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	a.Start()
	log.Info("serving runs", zap.String("listen", a.Addr()), zap.String("admin", a.AdminAddr()))
	err = json.NewEncoder(out).Encode(a.Control()) //nolint:gosec // a pipe to the process that has started this one
	if err == nil {
		err = untilIdle(ctx, a, stop)
	}
	return errors.Join(err, shutDown(a, log.Logger, cfg.Shutdown, stop))
}

// untilIdle waits until the last run has ended, or none has begun in time, or serving fails.
func untilIdle(ctx context.Context, a *app.App, stop <-chan os.Signal) error {
	first := time.NewTimer(firstRun)
	defer first.Stop()
	for {
		select {
		case <-a.Runs().Idle():
		case <-first.C:
		case <-ctx.Done():
			return nil
		case <-stop:
			return nil
		case err := <-a.Failed():
			return err
		}
		if a.Runs().Close() {
			return nil
		}
	}
}
