package app

import (
	"fmt"
	"reflect"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// Reload puts another configuration in force: tenants, condensers, models, session keys and the upstream, for the
// requests that come from now on. All that can fail is done before anything changes; an error leaves everything as it
// was. What needs a restart (listeners, store, limits, log) stays, and is named in the log.
func (a *App) Reload(cfg *config.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	live, err := a.live(cfg)
	a.health.refused.Store(err != nil)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	for _, key := range fixed(a.config, cfg) {
		a.log.Warn("this key takes effect at the next start", zap.String("key", key))
	}
	a.tokens.config.Store(cfg)
	a.server.Swap(live)
	a.log.Info("configuration reloaded", zap.Int("tenants", len(cfg.Tenants)))
	return nil
}

// fixed names the sections that differ and are read only at start.
func fixed(old, now *config.Config) []string {
	var keys []string
	for key, differs := range map[string]bool{
		"listen":                         old.Listen != now.Listen,
		"admin":                          old.Admin != now.Admin,
		"store":                          !reflect.DeepEqual(old.Store, now.Store),
		"limits":                         old.Limits != now.Limits,
		"shutdown":                       old.Shutdown != now.Shutdown,
		"log":                            old.Log != now.Log,
		"the longest summariser timeout": longestCall(old) != longestCall(now),
	} {
		if differs {
			keys = append(keys, key)
		}
	}
	return keys
}
