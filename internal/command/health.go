package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
)

// checkHealth queries the health of a running proxy on its admin port. It serves as the health check of containers whose
// image has no shell.
func checkHealth(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("health", errs)
	live := fs.Bool("live", false, "check whether the proxy is alive; if not, it should be restarted")
	ready := fs.Bool("ready", false, "check whether the proxy accepts requests (the default)")
	startup := fs.Bool("startup", false, "check whether the proxy has started")
	admin := fs.String("admin", "", "address of the proxy's admin port (default: as configured)")
	file := fs.String("config", "", "the proxy's configuration file (default: that of the proxy running on this machine)")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	path := health.ReadyPath
	switch {
	case *live && *ready, *live && *startup, *ready && *startup, fs.NArg() > 0:
		return usageError{errors.New("dewpoint: health accepts only one of --live, --ready and --startup, --admin ADDR and --config FILE")}
	case *live:
		path = health.LivePath
	case *startup:
		path = health.StartupPath
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

// runningArgs returns the arguments of the serve command that this program runs with on this machine. It returns nil if there
// is no such process, or more than one, or no /proc.
func runningArgs() []string {
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

// adminAddress returns addr, or the admin address in the proxy's configuration if addr is empty.
func adminAddress(addr, file string) (string, error) {
	if addr == "" {
		cfg, err := runningConfig(file)
		if cfg == nil {
			return "", err
		}
		addr = cfg.Admin.Listen // other errors do not matter: a proxy that refused a change keeps running
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return "", fmt.Errorf("dewpoint: %q is not the address of an admin port, such as 127.0.0.1:9090", addr)
	}
	return addr, nil
}

// runningConfig loads a configuration file or, if file is empty, the configuration of the running proxy. With an error it
// returns the part that it could read, or nil.
func runningConfig(file string) (*config.Config, error) {
	if file != "" {
		return load(configSource{file: file}, nil)
	}
	from, err := parseServe(runningArgs(), io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	return load(from, nil)
}
