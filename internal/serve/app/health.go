package app

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const pingTimeout = 500 * time.Millisecond // of the store

// healthState is the state behind the health probes.
type healthState struct {
	store    session.Backend
	pulse    atomic.Pointer[health.Pulse] // nil until the data port is served
	warm     atomic.Bool                  // the vocabularies are loaded
	draining atomic.Bool
	refused  atomic.Bool // the last reload was refused
}

// probes returns the health checks of the admin port.
//
// An unavailable store makes the service degraded, not unready. Requests are served without it, and replicas that share a
// Redis would all become unready at once. The same applies to a refused reload.
func (a *App) probes() health.Probes {
	s := &a.health
	starting := func() bool { return s.pulse.Load() == nil }
	cold := func() bool { return !s.warm.Load() }
	store := health.Check{Name: "store", Look: a.lookStore}
	return health.Probes{
		Live: []health.Check{{Name: "serving", Look: a.lookServing}},
		Ready: []health.Check{
			{Name: "accepting", Look: a.lookAccepting}, store,
			checkFlag("config", s.refused.Load, health.Degraded, "the last reload was refused: the configuration before it is in force"),
			{Name: "tenants", Look: a.refused.look},
			{Name: "summarisers", Look: a.lookSummarisers},
		},
		Startup: []health.Check{
			checkFlag("listening", starting, health.Failed, "starting"), store,
			checkFlag("vocabularies", cold, health.Failed, "loading"),
		},
	}
}

// troubles returns the checks of /readyz that are not passed.
func (a *App) troubles(ctx context.Context) (all []admin.Trouble) {
	for _, check := range a.probes().Ready {
		if state, detail := check.Look(ctx); state != health.OK {
			all = append(all, admin.Trouble{Check: check.Name, Detail: detail})
		}
	}
	return all
}

// checkFlag returns a check with the given state and detail while set returns true, and OK otherwise.
func checkFlag(name string, set func() bool, state health.State, detail string) health.Check {
	return health.Check{Name: name, Look: func(context.Context) (health.State, string) {
		if set() {
			return state, detail
		}
		return health.OK, ""
	}}
}

// watchHealth starts checking that the data port is served, and loads the vocabularies of the configured models.
func (a *App) watchHealth() {
	pulse := health.StartPulse(a.Addr())
	a.health.pulse.Store(pulse)
	a.onStopFunc("pulse", pulse.Stop)
	a.serving.Go(func() {
		a.tokens.Counter("") // for unknown models
		for name := range a.config.Models {
			a.tokens.Counter(name)
		}
		a.health.warm.Store(true)
	})
}

func (a *App) lookServing(ctx context.Context) (health.State, string) {
	pulse := a.health.pulse.Load()
	switch {
	case a.health.draining.Load():
		return health.OK, "stopping"
	case pulse == nil:
		return health.OK, "starting"
	}
	return pulse.Look(ctx)
}

func (a *App) lookAccepting(context.Context) (health.State, string) {
	switch {
	case a.health.draining.Load():
		return health.Failed, "stopping: send requests to another replica"
	case a.health.pulse.Load() == nil:
		return health.Failed, "starting"
	}
	return health.OK, ""
}

func (a *App) lookStore(ctx context.Context) (health.State, string) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := a.health.store.Ping(ctx)
	switch {
	case errors.Is(err, session.ErrDamaged):
		return health.Degraded, "damaged: requests that need lost records are forwarded unchanged; the next start renames the file and begins a new one"
	case err != nil:
		if !a.server.Degraded() && !errors.Is(ctx.Err(), context.Canceled) { // if the prober left, the store may be fine
			a.server.StoreAway(err)
		}
		return health.Degraded, "unavailable: requests are forwarded unchanged"
	}
	a.server.CheckStore(ctx)
	if a.server.Degraded() {
		return health.Degraded, "recovering, slow or full: the last request was forwarded unchanged or not logged"
	}
	return health.OK, ""
}

func (a *App) lookSummarisers(context.Context) (health.State, string) {
	if troubled := a.calls.health.Troubled(); len(troubled) > 0 {
		return health.Degraded, "cooling down: " + strings.Join(troubled, "; ")
	}
	return health.OK, ""
}
