package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/health"
)

// askHealth asks the proxy that runs with the same configuration how it is, by its admin port. It is for a container's
// health check: an image without a shell has nothing else to ask with.
func askHealth(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("health", errs)
	live := fs.Bool("live", false, "whether it lives; if not, start it again")
	ready := fs.Bool("ready", false, "whether it takes requests (the default)")
	startup := fs.Bool("startup", false, "whether it has started")
	admin := fs.String("admin", "", "address of its admin port (default: as configured)")
	file := fs.String("config", "", "its configuration file (default: that of the proxy that runs here)")
	if err := parse(fs, args); err != nil {
		return err
	}
	path, err := health.ReadyPath, error(nil)
	switch {
	case *live && (*ready || *startup), *ready && *startup:
		err = errors.New("dewpoint: one question at a time")
	case *live:
		path = health.LivePath
	case *startup:
		path = health.StartupPath
	}
	if err != nil || fs.NArg() > 0 {
		return usageError{errors.Join(err, errors.New("dewpoint: health takes one of --live, --ready, --startup, and --admin ADDR"))}
	}
	addr, err := adminAddress(*admin, *file)
	if err != nil {
		return usageError{err}
	}
	answer, err := health.Ask(ctx, addr, path)
	if answer != "" {
		fmt.Fprintln(out, answer)
	}
	return err
}

// running gives the arguments of serve with which this program runs on this machine; none if it does not, or more than once, or
// where there is no /proc.
func running() []string {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	names, _ := filepath.Glob("/proc/[0-9]*/exe")
	var found [][]string
	for _, name := range names {
		if exe, err := os.Readlink(name); err != nil || exe != own {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")[1:]
		if len(args) > 0 && args[0] == "serve" {
			args = args[1:]
		} else if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			continue // another command
		}
		found = append(found, args)
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// adminAddress is the address that was given, or else the one in the proxy's own configuration.
func adminAddress(addr, file string) (string, error) {
	if addr == "" {
		var err error
		sources := origin{file: file}
		if file == "" {
			if sources, err = sourcesOf(running(), io.Discard); err != nil {
				return "", err
			}
		}
		cfg, err := load(sources.file, sources.flags)
		if cfg == nil {
			return "", err
		}
		addr = cfg.Admin.Listen // whatever is wrong with the rest: a proxy that has refused a change goes on running
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return "", fmt.Errorf("dewpoint: %q is no address to ask: write it as 127.0.0.1:9090", addr)
	}
	return addr, nil
}
