package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// checkStore checks the store. If a proxy has it, that is asked, and returned.
func (p Patient) checkStore(ctx context.Context, found func(Finding)) *app.RunningError {
	store, err := app.LookAtStore(ctx, p.Config)
	running, isRunning := errors.AsType[*app.RunningError](err)
	switch {
	case isRunning:
		askRunning(ctx, running, found)
		return running
	case errors.Is(err, session.ErrDamaged):
		found(Finding{Fail, "store", fmt.Sprintf("%s is damaged: %s", store.Path, cause(err)),
			"start Dewpoint: it renames the file, keeps its secret and settings, and begins a new one"})
	case err != nil && p.Config.Store.Type == config.StoreRedis:
		found(Finding{Fail, "store", "Redis does not answer: " + err.Error(), "check store.redis, and that the server runs; without it requests pass unchanged"})
	case err != nil:
		found(Finding{Fail, "store", err.Error(), "correct store.path or the permissions of the file"})
	case p.Config.Store.Type == config.StoreRedis:
		found(Finding{OK, "store", "Redis answers", ""})
	case store.New:
		found(Finding{OK, "store", store.Path + " does not exist yet and will be created", ""})
	default:
		found(Finding{OK, "store", fmt.Sprintf("%s (sessions: %d, %.1f MB)", store.Path, store.Sessions, float64(store.Bytes)/1e6), ""})
	}
	return nil
}

// askRunning asks the proxy that has the store how it is.
func askRunning(ctx context.Context, running *app.RunningError, found func(Finding)) {
	if running.Listen == "" {
		found(Finding{Fail, "store", "another process uses " + running.Path, "stop it, or name another file with --store or store.path"})
		return
	}
	found(Finding{OK, "running", fmt.Sprintf("on %s since %s (process %d), with %s", running.Listen, running.Since.Format("2006-01-02 15:04"), running.PID, running.Path), ""})
	if running.Admin == "-" {
		found(Finding{Warn, "running", "it has no admin port, so it was not asked how it is", "set admin.listen"})
		return
	}
	answer, err := health.Ask(ctx, running.Admin, health.ReadyPath)
	var probe struct {
		Checks map[string]struct {
			Status health.State
			Detail string
		}
	}
	if answer == "" || json.Unmarshal([]byte(answer), &probe) != nil {
		found(Finding{Fail, "running", fmt.Sprintf("its admin port %s does not answer: %v", running.Admin, err), "restart it"})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(probe.Checks)) {
		switch c := probe.Checks[name]; c.Status {
		case health.Degraded:
			found(Finding{Warn, name, c.Detail, "see its log"})
		case health.Failed:
			found(Finding{Fail, name, c.Detail, "see its log"})
		}
	}
}
