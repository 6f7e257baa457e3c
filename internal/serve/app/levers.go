package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// leverInterval is how often levers are read from the store, where other replicas may have set them.
const leverInterval = 2 * time.Second

// leverPrefix begins the names of levers among the store's settings. The tenant's name follows; it is empty for all tenants.
const leverPrefix = "condensing:"

// levers holds the levers by tenant ("" for all tenants), as last read from the store.
type levers struct {
	store session.Archive
	log   *zap.Logger

	mu       sync.Mutex
	byTenant map[string]admin.Lever
}

// condensing returns the mode in force for a tenant. A lever for all tenants that says off comes first, then the tenant's
// own lever, then another lever for all tenants, then the configuration.
func (l *levers) condensing(tenant string, observes bool) admin.Condensing {
	c := admin.Condensing{Configured: admin.ModeOn}
	if observes {
		c.Configured = admin.ModeObserve
	}
	c.InForce = c.Configured
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range [...]string{"", tenant} {
		lever, set := l.byTenant[name]
		if set && lever.Until.After(now) && (c.Lever == nil || c.InForce != admin.ModeOff) {
			c.InForce, c.Lever = lever.Mode, &lever
		}
	}
	return c
}

// list returns a copy of the levers.
func (l *levers) list() map[string]admin.Lever {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byTenant)
}

// refresh reads the levers from the store, drops those that have expired, and reports whether anything changed. While the
// store is unavailable, known levers stay until they expire.
func (l *levers) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leverInterval)
	defer cancel()
	settings, err := l.store.Settings(ctx)
	all := l.list()
	if err == nil {
		all = map[string]admin.Lever{}
		for name, value := range settings {
			if tenant, ok := strings.CutPrefix(name, leverPrefix); ok {
				all[tenant] = admin.DecodeLever(value) // an invalid value counts as expired
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, lever admin.Lever) bool { return !lever.Until.After(time.Now()) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.Equal(l.byTenant, all) {
		return false
	}
	l.logChanges(all)
	l.byTenant = all
	return true
}

// logChanges logs which levers are new and which have ended.
func (l *levers) logChanges(now map[string]admin.Lever) {
	name := func(tenant string) zap.Field {
		if tenant == "" {
			return zap.Bool("all_tenants", true)
		}
		return zap.String("tenant", tenant)
	}
	for tenant, lever := range now {
		if lever != l.byTenant[tenant] {
			l.log.Warn("condensing is switched", name(tenant), zap.String("mode", string(lever.Mode)), zap.Time("until", lever.Until),
				zap.String("from", lever.From), zap.String("reason", lever.Reason))
		}
	}
	for tenant := range l.byTenant {
		if _, set := now[tenant]; !set {
			l.log.Warn("condensing switch ended", name(tenant))
		}
	}
}

// applyLevers sets the modes of newly built tenants, and updates the metric of switched tenants.
func (a *App) applyLevers(tenants []*proxy.Tenant) {
	switched := map[string]string{}
	for _, t := range tenants {
		c := a.levers.condensing(t.Name, t.Observe)
		t.Observe, t.Off = c.InForce == admin.ModeObserve, c.InForce == admin.ModeOff
		if c.Lever != nil {
			switched[t.Name] = string(c.InForce)
		}
	}
	a.metrics.Switched(switched)
}

// followStore starts applying levers that are set on any replica, or that expire, and keeping the secret that replicas share.
func (a *App) followStore() {
	ctx, cancel := context.WithCancel(context.Background())
	a.onStopFunc("levers and secret", cancel)
	a.serving.Go(func() {
		ticker := time.NewTicker(leverInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := a.refreshLevers(ctx); err != nil {
				a.log.Error("condensing could not be switched", zap.Error(err))
			}
			a.followSecret(ctx)
		}
	})
}

// followSecret keeps the secret in a store that replicas share, unless it is configured. One that Redis has lost may have been replaced by
// another replica's, and conversations are recognised by all replicas only if they have the same.
func (a *App) followSecret(ctx context.Context) {
	if a.config.Store.Type != config.StoreRedis || a.config.Store.Secret != "" {
		return
	}
	if adopted, _ := a.sessions.follow(ctx, a.health.store); adopted { // without Redis there is nothing to share
		a.log.Warn("Redis has lost the server's secret and has that of another replica, which is used from now on: conversations " +
			"start over, and compactions made before are refused; to prevent this, set store.secret on all replicas")
	}
}

// refreshLevers reads the levers from the store. If they have changed, it rebuilds the tenants from the configuration in
// force.
func (a *App) refreshLevers(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if !a.levers.refresh(ctx) {
		return nil
	}
	live, err := a.live(a.tokens.config.Load())
	if err != nil {
		return err
	}
	a.server.Swap(live)
	return nil
}

// SetLever implements admin.Settings. Other replicas follow within leverInterval.
func (s inForce) SetLever(ctx context.Context, lever admin.Lever) error {
	if err := s.app.levers.store.Set(ctx, leverPrefix+lever.Tenant, lever.Encode()); err != nil {
		return fmt.Errorf("set lever: %w", err)
	}
	return s.app.refreshLevers(ctx)
}

// Levers implements admin.Settings.
func (s inForce) Levers() []admin.Lever {
	levers := s.app.levers.list()
	out := make([]admin.Lever, 0, len(levers))
	for _, tenant := range slices.Sorted(maps.Keys(levers)) {
		out = append(out, levers[tenant])
	}
	return out
}
