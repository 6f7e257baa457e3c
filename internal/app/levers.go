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
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// leverEvery is how often the store is asked what other replicas were told.
const leverEvery = 2 * time.Second

// leverName begins the names of levers among the store's settings; a tenant follows, or nothing for all.
const leverName = "condensing:"

// levers is what operators have set over the configuration, by tenant ("" for all), as far as the store was last heard.
type levers struct {
	store session.Archive
	log   *zap.Logger

	mu  sync.Mutex
	all map[string]admin.Lever
}

// of tells what is in force for a tenant, next to what is configured: a lever that says off wins over all, then the tenant's own counts, then
// that for all, then the configuration.
func (l *levers) of(tenant string, observes bool) admin.Condensing {
	c, now := admin.Condensing{Configured: admin.ModeOn}, time.Now()
	if observes {
		c.Configured = admin.ModeObserve
	}
	c.InForce = c.Configured
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range [...]string{"", tenant} {
		if lever, set := l.all[name]; set && lever.Until.After(now) && (c.Lever == nil || c.InForce != admin.ModeOff) {
			c.InForce, c.Lever = lever.Mode, &lever
		}
	}
	return c
}

// list is the levers that are set.
func (l *levers) list() map[string]admin.Lever {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.all)
}

// read takes what the store has, without what has expired, and reports whether that is anything new. While the store is away, what was
// known stays until it expires.
func (l *levers) read(ctx context.Context, now time.Time) bool {
	settings, err := l.store.Settings(ctx)
	all := l.list()
	if err == nil {
		all = map[string]admin.Lever{}
		for name, value := range settings {
			if tenant, is := strings.CutPrefix(name, leverName); is {
				all[tenant] = admin.DecodeLever(value) // one that cannot be read has ended
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, lever admin.Lever) bool { return !lever.Until.After(now) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.EqualFunc(l.all, all, admin.Lever.Equal) {
		return false
	}
	l.tell(all)
	l.all = all
	return true
}

// begin reads what is set before anything is served. A store that is away is heard later.
func (l *levers) begin() {
	ctx, cancel := context.WithTimeout(context.Background(), leverEvery)
	defer cancel()
	l.read(ctx, time.Now())
}

// tell logs what was set and what has ended.
func (l *levers) tell(now map[string]admin.Lever) {
	name := func(tenant string) zap.Field {
		if tenant == "" {
			return zap.Bool("all_tenants", true)
		}
		return zap.String("tenant", tenant)
	}
	for tenant, lever := range now {
		if !lever.Equal(l.all[tenant]) {
			l.log.Warn("condensing is switched", name(tenant), zap.String("mode", string(lever.Mode)), zap.Time("until", lever.Until),
				zap.String("from", lever.From), zap.String("reason", lever.Reason))
		}
	}
	for tenant := range l.all {
		if _, set := now[tenant]; !set {
			l.log.Warn("condensing is as configured again", name(tenant))
		}
	}
}

// apply switches compiled tenants, and measures which differ from the configuration.
func (a *App) apply(tenants []*proxy.Tenant) {
	switched := map[string]string{}
	for _, t := range tenants {
		c := a.levers.of(t.Name, t.Observe)
		t.Observe, t.Off = c.InForce == admin.ModeObserve, c.InForce == admin.ModeOff
		if c.Lever != nil {
			switched[t.Name] = string(c.InForce)
		}
	}
	a.metrics.Switched(switched)
}

// followLevers has the configuration in force compiled anew whenever a lever was set, on any replica, or has ended.
func (a *App) followLevers() {
	ctx, cancel := context.WithCancel(context.Background())
	a.onEnd("levers", cancel)
	a.serving.Go(func() {
		tick := time.NewTicker(leverEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := a.readLevers(ctx); err != nil {
				a.log.Error("condensing could not be switched", zap.Error(err))
			}
		}
	})
}

// readLevers applies what the store has of levers, if that is new.
func (a *App) readLevers(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	limited, cancel := context.WithTimeout(ctx, leverEvery)
	defer cancel()
	if !a.levers.read(limited, time.Now()) {
		return nil
	}
	live, err := a.live(a.tokens.config.Load())
	if err == nil {
		a.server.Swap(live)
	}
	return err
}

// SetLever implements admin.Settings. The other replicas follow within leverEvery.
func (s inForce) SetLever(ctx context.Context, lever admin.Lever) error {
	if err := s.app.levers.store.Set(ctx, leverName+lever.Tenant, lever.Encode()); err != nil {
		return fmt.Errorf("set lever: %w", err)
	}
	return s.app.readLevers(ctx)
}

// Levers implements admin.Settings.
func (s inForce) Levers() []admin.Lever {
	all := s.app.levers.list()
	out := make([]admin.Lever, 0, len(all))
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[tenant])
	}
	return out
}
