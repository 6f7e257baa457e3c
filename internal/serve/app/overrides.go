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

// overrideInterval is how often overrides are read from the store, where other replicas may have set them.
const overrideInterval = 2 * time.Second

// overridePrefix begins the names of overrides among the store's settings. The tenant's name follows; it is empty for all tenants.
const overridePrefix = "condensing:"

// overrides holds the overrides by tenant ("" for all tenants), as last read from the store. Among them are those without a mode, by which a
// replica that knows of a removal prevents others from bringing an override back.
type overrides struct {
	store session.Archive
	log   *zap.Logger

	mu       sync.Mutex
	byTenant map[string]admin.Override
}

// condensing returns the mode in force for a tenant. An override for all tenants that says off comes first, then the tenant's
// own override, then another override for all tenants, then the configuration.
func (l *overrides) condensing(tenant string, observes bool) admin.Condensing {
	c := admin.Condensing{Configured: admin.ModeOn}
	if observes {
		c.Configured = admin.ModeObserve
	}
	c.InForce = c.Configured
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range [...]string{"", tenant} {
		override, set := l.byTenant[name]
		if set && override.Mode != "" && override.Until.After(now) && (c.Override == nil || c.InForce != admin.ModeOff) {
			c.InForce, c.Override = override.Mode, &override
		}
	}
	return c
}

// known returns a copy of the overrides, also those without a mode.
func (l *overrides) known() map[string]admin.Override {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]admin.Override{}
	maps.Copy(all, l.byTenant)
	return all
}

// list returns a copy of the overrides that are set.
func (l *overrides) list() map[string]admin.Override {
	all := l.known()
	maps.DeleteFunc(all, func(_ string, override admin.Override) bool { return override.Mode == "" })
	return all
}

// refresh reads the overrides from the store, drops those that have expired, and reports whether anything changed. While the
// store is unavailable, known overrides stay until they expire. What the store has lost is written back: overrides are never deleted, so that a
// known one is missing or older in the store only if that has lost its data.
func (l *overrides) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, overrideInterval)
	defer cancel()
	settings, err := l.store.Settings(ctx)
	all := l.known()
	if err == nil {
		stored := map[string]admin.Override{}
		for name, value := range settings {
			if tenant, ok := strings.CutPrefix(name, overridePrefix); ok {
				stored[tenant] = admin.DecodeOverride(value) // an invalid value counts as expired
			}
		}
		for tenant, override := range all {
			if has, is := stored[tenant]; (!is || override.Since.After(has.Since)) && override.Until.After(time.Now()) {
				stored[tenant] = override
				l.writeBack(ctx, tenant, override)
			}
		}
		all = stored
	}
	maps.DeleteFunc(all, func(_ string, override admin.Override) bool { return !override.Until.After(time.Now()) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.Equal(l.byTenant, all) {
		return false
	}
	l.logChanges(all)
	l.byTenant = all
	return true
}

// writeBack stores an override that the store has lost. If that fails, the next refresh tries again.
func (l *overrides) writeBack(ctx context.Context, tenant string, override admin.Override) {
	if err := l.store.Set(ctx, overridePrefix+tenant, override.Encode()); err == nil && override.Mode != "" {
		l.log.Warn("the store has lost an override of condensing: it is written back", nameField(tenant), zap.String("mode", string(override.Mode)),
			zap.Time("until", override.Until))
	}
}

// nameField returns the field of a log line that says whose override it is about.
func nameField(tenant string) zap.Field {
	if tenant == "" {
		return zap.Bool("all_tenants", true)
	}
	return zap.String("tenant", tenant)
}

// logChanges logs which overrides are new and which have ended.
func (l *overrides) logChanges(now map[string]admin.Override) {
	for tenant, override := range now {
		if override != l.byTenant[tenant] && override.Mode != "" {
			l.log.Warn("an override of condensing is in force", nameField(tenant), zap.String("mode", string(override.Mode)), zap.Time("until", override.Until),
				zap.String("from", override.From), zap.String("reason", override.Reason))
		}
	}
	for tenant, before := range l.byTenant {
		if before.Mode != "" && now[tenant].Mode == "" {
			l.log.Warn("an override of condensing has ended", nameField(tenant))
		}
	}
}

// applyOverrides sets the modes of newly built tenants, and updates the metric of switched tenants.
func (a *App) applyOverrides(tenants []*proxy.Tenant) {
	switched := map[string]string{}
	for _, t := range tenants {
		c := a.overrides.condensing(t.Name, t.Observe)
		t.Observe, t.Off = c.InForce == admin.ModeObserve, c.InForce == admin.ModeOff
		if c.InForce == admin.ModeMain {
			t.Holdout, t.Arm = session.Holdout{}, nil
		}
		if c.Override != nil {
			switched[t.Name] = string(c.InForce)
		}
	}
	a.metrics.Switched(switched)
}

// followStore starts a goroutine that applies overrides when any replica sets them and when they expire, and that keeps the secret in the
// store which replicas share.
func (a *App) followStore() {
	ctx, cancel := context.WithCancel(context.Background())
	a.onStopFunc("overrides and secret", cancel)
	a.serving.Go(func() {
		ticker := time.NewTicker(overrideInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := a.refreshOverrides(ctx); err != nil {
				a.log.Error("an override of condensing was not applied: the tenants cannot be built with it", zap.Error(err))
			}
			a.followSecret(ctx)
		}
	})
}

// followSecret keeps the secret in a store that replicas share, unless the secret is configured. If Redis has lost the secret, another replica
// may have written its own; only replicas with the same secret recognise each other's conversations.
func (a *App) followSecret(ctx context.Context) {
	if a.config.Store.Type != config.StoreRedis || a.config.Store.Secret != "" {
		return
	}
	if adopted, _ := a.sessions.follow(ctx, a.health.store); adopted { // without Redis there is nothing to share
		a.log.Warn("Redis has lost the server's secret and has that of another replica, which is used from now on: conversations " +
			"start over, and compactions made before are refused; to prevent this, set store.secret on all replicas")
	}
}

// refreshOverrides reads the overrides from the store. If they have changed, it rebuilds the tenants from the configuration in
// force.
func (a *App) refreshOverrides(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if !a.overrides.refresh(ctx) {
		return nil
	}
	live, err := a.live(a.tokens.config.Load())
	if err != nil {
		return err
	}
	a.server.Swap(live)
	return nil
}

// SetOverride implements admin.Settings. Other replicas apply the override within overrideInterval. It counts as set later than those that are
// known, also if the clock of the replica that set them is ahead.
func (s inForce) SetOverride(ctx context.Context, override admin.Override) error {
	if err := s.app.refreshOverrides(ctx); err != nil {
		return err
	}
	if last := s.app.overrides.known()[override.Tenant].Since; !override.Since.After(last) {
		override.Since = last.Add(1)
	}
	if err := s.app.overrides.store.Set(ctx, overridePrefix+override.Tenant, override.Encode()); err != nil {
		return fmt.Errorf("set override: %w", err)
	}
	return s.app.refreshOverrides(ctx)
}

// Overrides implements admin.Settings.
func (s inForce) Overrides() []admin.Override {
	overrides := s.app.overrides.list()
	out := make([]admin.Override, 0, len(overrides))
	for _, tenant := range slices.Sorted(maps.Keys(overrides)) {
		out = append(out, overrides[tenant])
	}
	return out
}
