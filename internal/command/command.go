// Package command is the command line of dewpoint: its commands, their flags and their output.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // run-time error
	exitUsage   = 2 // invalid command line or configuration
)

const usage = `Dewpoint condenses long agent histories on their way to an OpenAI-compatible API or Anthropic's Messages API.

Usage:
  dewpoint [serve] [flags]                run the proxy
  dewpoint init [--yes] [--file FILE]     write a configuration, from what is found on this machine and three questions
  dewpoint doctor [--config FILE] [--json]
                                          check configuration, ports, store, upstreams, models and the settings of agents
  dewpoint run [--observe] [--config FILE] -- AGENT ...
                                          run an agent through the proxy, and print what that saved; --list lists agents
  dewpoint check-config [--print] [--probe] FILE
                                          validate a configuration; with --print, show it with all defaults;
                                          with --probe, call its models
  dewpoint demo                           show how it works, without network or key
  dewpoint replay [flags] FILE|FOLDER ... what your agents' sessions would have cost with Dewpoint, offline: logs of Claude Code
                                          and Codex, lists of messages; see docs/replay.md
  dewpoint savings [--since 7d] [--by day,tenant,model,agent] [--json|--csv]
                                          what requests cost, with and without Dewpoint
  dewpoint why REQUEST|SESSION            what was condensed and why, or why not; why a thread began, and why upstream's cache was missed
  dewpoint size [--sessions N] [--messages N] [--bytes N] [--days N]
                                          the memory and the keys that sessions take in Redis
  dewpoint health [--live|--ready|--startup] [--admin ADDR] [--config FILE]
                                          check the proxy that runs on this machine
  dewpoint service install|remove|status [--config FILE]
                                          run the proxy whenever you log in
  dewpoint version                        print the version

Flags of serve:
  --config FILE    configuration, YAML or TOML (default dewpoint/config.yaml in the user's configuration folder, if there is one)
  --listen ADDR    data port (default 127.0.0.1:8080)
  --upstream URL   where all requests go, with the client's own key (default: to the provider that the client means)
  --admin ADDR     port of health, metrics and admin API (default 127.0.0.1:9090)
  --store FILE     state of the embedded store (default state.db in the user's state folder)
  --log-format F   console for people, json for machines (default: console on a terminal, json elsewhere)
`

// Main runs the command line of this process and returns its exit code.
func Main() int {
	return run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
}

// interruptible runs a command whose context a signal cancels.
func interruptible(ctx context.Context, command func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command(ctx)
}

// usageError is an error in the command line or the configuration.
type usageError struct{ error }

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	err := dispatch(ctx, args, out, errs)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		if exit.text != "" {
			fmt.Fprintln(errs, exit.text)
		}
		return exit.code
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(errs, err)
		return exitUsage
	}
	fmt.Fprintln(errs, "dewpoint:", err)
	return exitFailure
}

func dispatch(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--version" && args[0] != "-v" {
		args = append([]string{"serve"}, args...)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "serve":
		return serve(ctx, rest, out, errs)
	case "init":
		return initConfig(ctx, rest, os.Stdin, out, errs) // a signal ends it: nothing is written before the last answer
	case "doctor":
		return interruptible(ctx, func(ctx context.Context) error { return runDoctor(ctx, rest, out, errs) })
	case "run":
		return runAgent(ctx, rest, out, errs)
	case hostName:
		return hostRuns(ctx, rest, out, errs)
	case "size":
		return estimateSize(rest, out, errs)
	case "check-config":
		return checkConfig(rest, out, errs)
	case "check-store":
		return usageError{errors.New("dewpoint: check-store was removed: a start renames a damaged store and begins a new one")}
	case "demo":
		return interruptible(ctx, func(ctx context.Context) error { return runDemo(ctx, rest, out, errs) })
	case "replay":
		return interruptible(ctx, func(ctx context.Context) error { return replayRuns(ctx, rest, out, errs) })
	case "savings":
		return interruptible(ctx, func(ctx context.Context) error { return showSavings(ctx, rest, out, errs) })
	case "why":
		return interruptible(ctx, func(ctx context.Context) error { return why(ctx, rest, out, errs) })
	case "health":
		return interruptible(ctx, func(ctx context.Context) error { return checkHealth(ctx, rest, out, errs) })
	case "service":
		return interruptible(ctx, func(ctx context.Context) error { return serviceCommand(ctx, rest, out, errs) })
	case "version", "--version", "-v":
		fmt.Fprintln(out, versionText())
		return nil
	case "help":
		fmt.Fprint(out, usage)
		return nil
	}
	return usageError{fmt.Errorf("dewpoint: unknown command %q\n\n%s", name, usage)}
}

// serveName is the name of the flag set of serve, whose help is usage.
const serveName = "dewpoint serve"

// flags returns a flag set for a command. It writes its errors to errs; parse prints the help.
func flags(name string, errs io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("dewpoint "+name, flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {}
	return fs
}

// parse parses flags, which may follow other arguments. If help is asked for, it prints that to out and returns flag.ErrHelp. The flag set
// reports errors, so the returned one only points to the help.
func parse(fs *flag.FlagSet, args []string, out io.Writer) error {
	var others []string
	err := fs.Parse(args)
	for ; err == nil && fs.NArg() > 0; err = fs.Parse(fs.Args()[1:]) {
		others = append(others, fs.Arg(0))
	}
	if err == nil {
		err = fs.Parse(append([]string{"--"}, others...))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(fs, out)
		return err
	case err != nil:
		if fs.Name() == serveName {
			return usageError{errors.New("dewpoint: see 'dewpoint help'")}
		}
		return usageError{fmt.Errorf("dewpoint: see '%s --help'", fs.Name())}
	}
	return nil
}

// printHelp prints the flags of a command.
func printHelp(fs *flag.FlagSet, out io.Writer) {
	if fs.Name() == serveName {
		fmt.Fprint(out, usage)
		return
	}
	errs := fs.Output()
	defer fs.SetOutput(errs)
	var text strings.Builder
	fs.SetOutput(&text)
	fs.PrintDefaults()
	fmt.Fprintf(out, "Usage of %s:%s", fs.Name(), strings.ReplaceAll("\n"+text.String(), "\n  -", "\n  --"))
}
