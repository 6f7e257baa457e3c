package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

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
	file := fs.String("config", os.Getenv("DEWPOINT_CONFIG"), "its configuration file")
	if err := parse(fs, args); err != nil {
		return err
	}
	path, err := probePath(*live, *ready, *startup)
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

func probePath(live, ready, startup bool) (string, error) {
	switch {
	case live && (ready || startup), ready && startup:
		return "", errors.New("dewpoint: one question at a time")
	case live:
		return health.LivePath, nil
	case startup:
		return health.StartupPath, nil
	}
	return health.ReadyPath, nil
}

// adminAddress is the address that was given, or else the one that the proxy's own configuration has.
func adminAddress(given, file string) (string, error) {
	addr := given
	if addr == "" {
		cfg, err := load(file, nil)
		if err != nil {
			return "", err
		}
		addr = cfg.Admin.Listen
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return "", fmt.Errorf("dewpoint: %q is no address to ask: write it as 127.0.0.1:9090", addr)
	}
	return addr, nil
}
