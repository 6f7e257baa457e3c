package app

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
)

// serveRuns lets other processes of this machine begin runs, if that is wanted and the data port can be reached by a loopback address.
func (a *App) serveRuns() error {
	at := a.dataListener.Addr().(*net.TCPAddr).IP
	if !a.options.Runs || !at.IsLoopback() && !at.IsUnspecified() {
		return nil
	}
	control, err := runs.NewControl(a.runs, a.service)
	if err != nil {
		return fmt.Errorf("serve runs: %w", err)
	}
	a.control = control
	ports := []net.Addr{a.dataListener.Addr(), control.Addr()}
	if a.adminListener != nil {
		ports = append(ports, a.adminListener.Addr())
	}
	a.calls.own.Set(ports...)
	a.onStop("runs", func(context.Context) error { return control.Close() })
	return nil
}

// service describes this process to those who begin a run.
func (a *App) service() runs.Service {
	cfg, file := a.inForce(), a.options.Config
	if file != "" {
		if absolute, err := filepath.Abs(file); err == nil {
			file = absolute
		}
	}
	s := runs.Service{Listen: a.Addr(), Admin: a.AdminAddr(), Version: a.options.Version, Config: file, Upstreams: map[string]string{},
		Holdable: a.options.HoldPort && platform.CanHold}
	for _, p := range provider.Names() {
		s.Upstreams[string(p)] = cfg.UpstreamFor(config.Tenant{}, p).BaseURL
	}
	return s
}

// Runs returns the runs of agents.
func (a *App) Runs() *runs.Registry { return a.runs }

// Control returns where other processes begin runs. It is empty if they cannot.
func (a *App) Control() runs.Address {
	if a.control == nil {
		return runs.Address{}
	}
	return a.control.Address()
}

// RunLog returns the path of the log of a proxy that is started for runs: beside the embedded store, otherwise in the user's state folder.
func RunLog(cfg *config.Config) (string, error) {
	where := cfg.Store
	if where.Type != config.StoreEmbedded {
		where.Path = ""
	}
	path, err := storePath(where)
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(path), "run.log"), nil
}
