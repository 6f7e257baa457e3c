// Command dewpoint is an OpenAI-compatible reverse proxy that condenses long agent histories.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitFine    = 0
	exitFailure = 1 // at run time
	exitUsage   = 2 // wrong usage or configuration
)

const usage = `Dewpoint condenses long agent histories on their way to an OpenAI-compatible API.

Usage:
  dewpoint [serve] [--config FILE] [--listen ADDR] [--upstream URL]   run the proxy
  dewpoint check-config [--probe] FILE                               report every problem of a configuration, and ask its models
  dewpoint check-store [--renew] FILE                                say what is damaged in an embedded store
  dewpoint demo [--protocol NAME]                                    see it work: no network, no key
  dewpoint replay [flags] FILE|FOLDER ...                            play recorded runs through it, offline
  dewpoint health [--live|--ready|--startup] [--admin ADDR]          check the proxy on this machine
  dewpoint version

Without flags it serves on 127.0.0.1:8080, forwards to https://api.openai.com/v1 with the client's own key and keeps its
state in dewpoint.db.
`

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// interruptible runs a command that a signal ends at once.
func interruptible(ctx context.Context, command func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command(ctx)
}

// usageError is a wrong command line or configuration.
type usageError struct{ error }

// run is main without the process.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	err := dispatch(ctx, args, out, errs)
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitFine
	case errors.As(err, &wrong):
		fmt.Fprintln(errs, err)
		return exitUsage
	}
	fmt.Fprintln(errs, "dewpoint:", err)
	return exitFailure
}

func dispatch(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 0 || (len(args[0]) > 0 && args[0][0] == '-') {
		args = append([]string{"serve"}, args...)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "serve":
		return serve(ctx, rest, errs)
	case "check-config":
		return checkConfig(rest, out, errs)
	case "check-store":
		return checkStore(rest, out, errs)
	case "demo":
		return interruptible(ctx, func(ctx context.Context) error { return runDemo(ctx, rest, out, errs) })
	case "replay":
		return interruptible(ctx, func(ctx context.Context) error { return replayRuns(ctx, rest, out, errs) })
	case "health":
		return interruptible(ctx, func(ctx context.Context) error { return askHealth(ctx, rest, out, errs) })
	case "version":
		fmt.Fprintln(out, versionText())
		return nil
	case "help":
		fmt.Fprint(out, usage)
		return nil
	}
	return usageError{fmt.Errorf("dewpoint: unknown command %q\n\n%s", name, usage)}
}

// flags makes a flag set that reports wrong usage as such.
func flags(name string, errs io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("dewpoint "+name, flag.ContinueOnError)
	fs.SetOutput(errs)
	if name == "serve" {
		fs.Usage = func() { fmt.Fprint(errs, usage) }
	}
	return fs
}

// parse parses flags; the flag set has already reported what is wrong.
func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{errors.New("dewpoint: see 'dewpoint help'")}
	}
	return nil
}
