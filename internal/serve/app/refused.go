package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// refusedKeys returns the tenants whose files have problems, with their keys.
func refusedKeys(cfg *config.Config) (all []proxy.Refused) {
	for _, r := range cfg.Refused {
		p := proxy.Refused{Name: r.Name}
		for _, k := range r.Keys() {
			if sum, valid := k.Digest(); valid {
				p.Keys = append(p.Keys, sum)
			}
		}
		all = append(all, p)
	}
	return all
}

// refusedTenants reports the tenants whose files have problems. The zero value has none.
type refusedTenants struct {
	now atomic.Pointer[[]config.Refused]
}

func (r *refusedTenants) load() []config.Refused {
	if now := r.now.Load(); now != nil {
		return *now
	}
	return nil
}

// replace takes the refused tenants of a configuration, and logs those that are new or refused for other reasons than before.
func (r *refusedTenants) replace(now []config.Refused, log *zap.Logger) {
	said := map[string]string{}
	for _, t := range r.load() {
		said[t.Key] = refusal(t)
	}
	for _, t := range now {
		if said[t.Key] != refusal(t) {
			log.Error("a tenant's file is refused", zap.String("tenant", nameOf(t)), zap.String("serves", serves(t)), zap.Error(t.Problems.Err()))
		}
	}
	r.now.Store(&now)
}

func refusal(t config.Refused) string { return serves(t) + t.Problems.Error() }

// serves says what a refused tenant's clients get, as the value of a metric's label.
func serves(t config.Refused) string {
	if t.Kept {
		return "last_good"
	}
	return "nothing"
}

// nameOf returns the name of a refused tenant, or that of its file.
func nameOf(t config.Refused) string {
	if t.Name != "" {
		return t.Name
	}
	return filepath.Base(strings.Trim(strings.TrimPrefix(t.Key, "tenants_dir"), `.["]`))
}

// otherTenant is the name in metrics of refused tenants without a valid one.
const otherTenant = "other"

// byName yields the name of each refused tenant, and what it serves.
func (r *refusedTenants) byName(yield func(tenant, serves string) bool) {
	seen := map[string]bool{}
	for _, t := range r.load() {
		name := t.Name
		if name == "" {
			name = otherTenant
		}
		if !seen[name] && !yield(name, serves(t)) {
			return
		}
		seen[name] = true
	}
}

// maxNamed is how many refused tenants the health probe names.
const maxNamed = 20

func (r *refusedTenants) look(context.Context) (health.State, string) {
	all := r.load()
	if len(all) == 0 {
		return health.OK, ""
	}
	var names []string
	for _, t := range all[:min(len(all), maxNamed)] {
		state := "refused"
		if t.Kept {
			state = "its last good version is in force"
		}
		names = append(names, fmt.Sprintf("%q (%s)", nameOf(t), state))
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return health.Degraded, "files with errors: " + strings.Join(names, ", ") + "; the log and check-config say why"
}
