package app

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/health"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// pinging bounds the question to the store whether it is there.
const pinging = 500 * time.Millisecond

// healthState is what the probes look at.
type healthState struct {
	store    session.Backend
	pulse    atomic.Pointer[health.Pulse] // nil until the data port is served
	warm     atomic.Bool                  // the vocabularies are loaded
	draining atomic.Bool
	refused  atomic.Bool // the last reload was
}

// probes are what the admin port answers about health.
//
// A store that is away makes the service degraded, not unready: requests pass without it, and if it is a Redis that
// replicas share, all of them would become unready at once. The same goes for a reload that was refused.
func (a *App) probes() health.Probes {
	s := &a.health
	starting := func() bool { return s.pulse.Load() == nil }
	cold := func() bool { return !s.warm.Load() }
	store := health.Check{Name: "store", Look: a.lookStore}
	return health.Probes{
		Live: []health.Check{{Name: "serving", Look: a.lookServing}},
		Ready: []health.Check{
			{Name: "accepting", Look: a.lookAccepting}, store,
			when("config", s.refused.Load, health.Degraded, "the last reload was refused: the configuration before it is in force"),
			{Name: "summarisers", Look: a.lookSummarisers},
		},
		Startup: []health.Check{
			when("listening", starting, health.Failed, "starting"), store, when("vocabularies", cold, health.Failed, "loading"),
		},
	}
}

// when is a check that finds that something is so, or nothing.
func when(name string, so func() bool, state health.State, detail string) health.Check {
	return health.Check{Name: name, Look: func(context.Context) (health.State, string) {
		if so() {
			return state, detail
		}
		return health.OK, ""
	}}
}

// watchHealth begins to check that the data port is served, and loads the vocabularies that requests will need first.
func (a *App) watchHealth() {
	pulse := health.StartPulse(a.Addr())
	a.health.pulse.Store(pulse)
	a.onEnd("pulse", pulse.Stop)
	a.serving.Go(func() {
		a.tokens.Counter("") // an unknown model
		for name := range a.config.Models {
			a.tokens.Counter(name)
		}
		a.health.warm.Store(true)
	})
}

func (a *App) lookServing(ctx context.Context) (health.State, string) {
	switch pulse := a.health.pulse.Load(); {
	case a.health.draining.Load():
		return health.OK, "stopping"
	case pulse == nil:
		return health.OK, "starting"
	default:
		return pulse.Look(ctx)
	}
}

func (a *App) lookAccepting(context.Context) (health.State, string) {
	switch {
	case a.health.draining.Load():
		return health.Failed, "stopping: requests are to go elsewhere"
	case a.health.pulse.Load() == nil:
		return health.Failed, "starting"
	}
	return health.OK, ""
}

func (a *App) lookStore(ctx context.Context) (health.State, string) {
	ctx, cancel := context.WithTimeout(ctx, pinging)
	defer cancel()
	switch err := a.health.store.Ping(ctx); {
	case errors.Is(err, session.ErrDamaged):
		return health.Degraded, "damaged: requests that need what is lost are forwarded as they come; see 'dewpoint check-store'"
	case err != nil:
		return health.Degraded, "away: requests are forwarded as they come"
	}
	if a.server.Degraded() {
		a.server.CheckStore(ctx)
	}
	if a.server.Degraded() {
		return health.Degraded, "back, or slow, or full: the last request was forwarded without it, or not logged"
	}
	return health.OK, ""
}

func (a *App) lookSummarisers(context.Context) (health.State, string) {
	if troubled := a.calls.health.Troubled(); len(troubled) > 0 {
		return health.Degraded, "left alone for a while: " + strings.Join(troubled, "; ")
	}
	return health.OK, ""
}
