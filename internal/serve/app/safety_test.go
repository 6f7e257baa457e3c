package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
)

// TestAdminNeedsAToken checks that without a token the admin port is opened only on loopback, even if its address is given by a name, which
// only the listener resolves. Otherwise the start fails, and releases the store.
func TestAdminNeedsAToken(t *testing.T) {
	cfg := load(t, ".yaml", "condenser: {type: noop}")
	for _, c := range []struct {
		listen string
		token  config.Secret
		opens  bool
	}{
		{"0.0.0.0:0", "", false}, {"0.0.0.0:0", "a-token", true}, {"127.0.0.1:0", "", true}, {"localhost:0", "", true}, {":0", "", false},
	} {
		cfg.Admin.Listen, cfg.Admin.Token = c.listen, c.token
		a, err := New(cfg, zap.NewNop(), Options{})
		if (err == nil) != c.opens {
			t.Errorf("%s with token %q: %v", c.listen, c.token.Reveal(), err)
		}
		if err != nil && !strings.Contains(err.Error(), "set admin.token") {
			t.Errorf("%s: %v does not say what to do", c.listen, err)
		}
		if err == nil {
			shut(t, a)
		}
	}
}

// TestReloadLeavesNoOpenProxy checks that a reload which removes all tenants is refused, since any key would then be accepted. The tenants in
// force stay, and the service is degraded until a reload succeeds. Tenants can be added to a proxy that has none.
func TestReloadLeavesNoOpenProxy(t *testing.T) {
	open := load(t, ".yaml", "condenser: {type: noop}")
	closed := *open
	closed.Tenants = []config.Tenant{{Name: "a", APIKeys: []config.APIKey{{SHA256: strings.Repeat("a", 64)}}}}
	a, err := New(open, zap.NewNop(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, a)
	checks := a.probes().Ready
	look := checks[slices.IndexFunc(checks, func(c health.Check) bool { return c.Name == "config" })].Look
	for i, step := range []struct {
		config  *config.Config
		refused bool
		tenants int
	}{{open, false, 0}, {&closed, false, 1}, {open, true, 1}, {&closed, false, 1}, {open, true, 1}} {
		if err := a.Reload(step.config); errors.Is(err, errTenantsGone) != step.refused || !step.refused && err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		state, _ := look(context.Background())
		if n := len(a.tokens.config.Load().Tenants); n != step.tenants || (state == health.Degraded) != step.refused {
			t.Errorf("step %d: %d tenants are in force, state %v", i, n, state)
		}
	}
}
