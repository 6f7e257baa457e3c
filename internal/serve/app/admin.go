package app

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bounds of an exchange on the admin port.
const (
	adminReadTimeout  = 10 * time.Second
	adminWriteTimeout = 2 * time.Minute
	adminMaxHeader    = 16 << 10 // bytes

	// adminShare is the divisor of limits.bytes_in_flight, since a response takes about four times the memory of the messages it shows.
	adminShare = 4
)

// buildAdmin builds the admin port's server, if that port is configured.
func (a *App) buildAdmin(store session.Backend) error {
	if a.adminListener == nil {
		return nil
	}
	token := a.config.Admin.Token.Reveal()
	if ip := a.adminListener.Addr().(*net.TCPAddr).IP; !a.config.Admin.Locked() && !ip.IsLoopback() {
		return fmt.Errorf("admin.listen: %s resolves to %s, which is not a loopback address: set admin.token", a.config.Admin.Listen, ip)
	}
	probes := http.NewServeMux()
	a.probes().Register(probes) // without a token, because a kubelet has none
	handler := admin.New(admin.Options{
		Token: token, Tokens: adminTokens(a.config), StartToken: a.startToken, Hosts: a.config.Admin.Hosts, Version: a.options.Version, Store: store, Archive: store,
		Forwarder: a.engine, Journal: a.journal, Audit: admin.NewAudit(store), Settings: inForce{a}, Metrics: a.metrics.Handler(), Health: probes, Troubles: a.troubles,
		MaxBytes: int64(a.config.Limits.InFlight(memoryLimit())) / adminShare,
		OnError:  func(err error) { a.log.Warn("admin request failed", zap.Error(err)) },
		OnChange: func(c admin.Change) {
			a.log.Info("admin change", zap.String("method", c.Method), zap.String("path", c.Path),
				zap.String("query", c.Query), zap.String("from", c.From), zap.String("who", c.Who))
		},
	})
	a.admin = &http.Server{
		Handler: handler, ReadHeaderTimeout: adminReadTimeout, ReadTimeout: adminReadTimeout, WriteTimeout: adminWriteTimeout,
		MaxHeaderBytes: adminMaxHeader, ErrorLog: zap.NewStdLog(a.log),
	}
	return nil
}

// adminTokens returns the further tokens of the admin port.
func adminTokens(cfg *config.Config) (all []admin.Token) {
	for _, t := range cfg.Admin.Tokens {
		if digest, ok := t.Key().Digest(); ok { // it has been validated
			all = append(all, admin.Token{Name: t.Name, Hash: digest, Role: admin.Role(t.Role), Tenants: t.Tenants})
		}
	}
	return all
}

// AdminToken returns the token that shows content on an admin port that requires no token; "" if it requires one. Who started the process is
// told, so that other users of the machine see figures only.
func (a *App) AdminToken() string { return a.startToken }

// inForce implements admin.Settings for the configuration in force.
type inForce struct{ app *App }

func (s inForce) Effective() ([]byte, error) { return s.app.tokens.config.Load().EffectiveJSON() }

func (s inForce) Tenants() (out []admin.Tenant) {
	cfg := s.app.tokens.config.Load()
	for _, t := range cfg.EveryTenant() {
		upstream, condenser, observes := cfg.UpstreamFor(t, provider.OpenAI), cfg.CondenserFor(t), cfg.Observes(t)
		out = append(out, admin.Tenant{
			Name: t.Name, Anonymous: cfg.IsOpen(), Keys: len(t.APIKeys),
			Upstream: upstream.BaseURL, UpstreamKey: upstream.APIKey != "", Upstreams: otherUpstreams(cfg, t),
			Condenser: condenser.Type, Condenses: forgets(condenser),
			Observe: observes, Notify: t.Notify, LogContent: t.LogContent,
			Holdout: t.Holdout.Share, HoldoutCondenser: armOf(t), HoldoutVariant: compared(t).Variant,
			Limits: cfg.LimitsFor(t), Condensing: s.app.overrides.condensing(t.Name, observes),
		})
	}
	return out
}

// otherUpstreams returns the addresses of the providers whose requests go elsewhere than OpenAI's.
func otherUpstreams(cfg *config.Config, t config.Tenant) map[string]string {
	others := map[string]string{}
	for _, p := range provider.Names() {
		if at := cfg.UpstreamFor(t, p).BaseURL; at != cfg.UpstreamFor(t, provider.OpenAI).BaseURL {
			others[string(p)] = at
		}
	}
	return others
}

// forgets reports whether a condenser can make condensations, rather than only change views.
func forgets(c config.Condenser) bool {
	return c.Uses(func(stage config.Condenser) bool { return stage.Entry().Forgets() })
}
