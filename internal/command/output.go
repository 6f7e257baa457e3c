package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/console"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// output is what serve writes: lines for people at a terminal, or a log in JSON.
type output struct {
	log    *app.Log
	people *console.Console // nil: the output is JSON
}

func openOutput(cfg config.Log, to io.Writer) (out output, err error) {
	screen := terminal.Of(to, os.Getenv)
	core := app.JSON
	if cfg.Format == config.FormatConsole || cfg.Format == config.FormatAuto && screen.IsTerminal() {
		core = func(queue io.Writer, level zapcore.LevelEnabler) zapcore.Core {
			out.people = console.New(screen.Through(queue), cfg.Requests && level.Enabled(zap.InfoLevel), time.Now)
			return out.people.Core(level)
		}
	}
	out.log, err = app.NewLogger(cfg.Level, to, core)
	return out, err
}

// watcher returns what is told of each request that has ended, nil if nobody is.
func (o output) watcher() observe.Watcher {
	if o.people == nil {
		return nil
	}
	return o.people
}

// serving says that the service has started, and where. file is the configuration file, if there is one.
func (o output) serving(a *app.App, cfg *config.Config, file string) {
	if o.people == nil {
		o.log.Info("serving", zap.String("listen", a.Addr()), zap.String("admin", a.AdminAddr()),
			zap.String("upstream", cmp.Or(cfg.Upstream.BaseURL, "by provider")), zap.String("store", cfg.Store.Type))
		return
	}
	b := console.Banner{Version: version, File: file, Config: cfg, Listen: health.Reachable(a.Addr()), Store: a.StorePath(), Kept: kept(a)}
	if admin := a.AdminAddr(); admin != "" {
		b.Admin = health.Reachable(admin)
		if token := a.AdminToken(); token != "" {
			b.Admin += "/?token=" + token
		}
	}
	b.Home, _ = os.UserHomeDir()
	o.people.Start(b)
}

// kept says how many sessions the store has, or nothing if it does not say so at once.
func kept(a *app.App) string {
	const most = 1000
	if a.StorePath() == "" { // Redis has more than one replica's, and lists them slowly
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch n, err := a.Sessions(ctx, most); {
	case err != nil:
		return ""
	case n == 1:
		return "1 session"
	case n == most:
		return fmt.Sprintf("%d sessions or more", n)
	default:
		return fmt.Sprintf("%d sessions", n)
	}
}

// close writes the total and the rest of the log. It gives up after two seconds.
func (o output) close() {
	if o.people != nil {
		o.people.End()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	o.log.Close(ctx)
}

// defaultFile returns the user's configuration file if there is one, otherwise "".
func defaultFile(getenv func(string) string) string {
	path, err := defaultPath(getenv)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// defaultPath returns where a user's configuration file is if none is named.
func defaultPath(getenv func(string) string) (string, error) {
	folder, err := platform.ConfigFolder("dewpoint", getenv)
	return filepath.Join(folder, "config.yaml"), err
}
