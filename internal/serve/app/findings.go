package app

import (
	"cmp"
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// watchFindings counts the outcomes of findings, and logs when a sink fails and when it recovers.
type watchFindings struct {
	*observe.Metrics
	log *zap.Logger
}

func (w watchFindings) Sink(tenant string, err error) {
	if err == nil {
		w.log.Info("findings are delivered again", zap.String("tenant", tenant))
		return
	}
	w.log.Warn("findings are not delivered, and wait in the store; logged once until delivery recovers", zap.String("tenant", tenant), zap.Error(err))
}

func (w watchFindings) Unread(tenant string, err error) {
	w.log.Warn("findings cannot be read, and wait in the store; others are delivered", zap.String("tenant", tenant), zap.Error(err))
}

// promise returns the function that promises to deliver the findings of a tenant's condensations (see findings.Courier.Promise), or nil if
// the tenant has no memory.
func (c *calls) promise(t config.Tenant) func(context.Context, session.ThreadID, *session.Condensation) func() {
	if c.memory == nil || !t.Memory.Set() {
		return nil
	}
	return func(ctx context.Context, thread session.ThreadID, made *session.Condensation) func() {
		return c.memory.Promise(ctx, t.Name, thread, made)
	}
}

// routes returns the destinations of findings by tenant.
func (c *calls) routes(cfg *config.Config) map[string]findings.Route {
	all := map[string]findings.Route{}
	for _, t := range cfg.EveryTenant() {
		if m := &t.Memory; m.Set() {
			all[t.Name] = findings.Route{
				Sink:       sink(m, c.transportOf(cfg, t)),
				MaxPending: cmp.Or(m.MaxPending, config.DefaultPending),
				MaxAge:     cmp.Or(m.MaxAge, config.DefaultPendingAge),
			}
		}
	}
	return all
}

func sink(m *config.Memory, transport http.RoundTripper) findings.Sink {
	switch {
	case m.File != "":
		return findings.File{Path: m.File}
	case m.Webhook.URL != "":
		return findings.Webhook{Transport: transport, URL: m.Webhook.URL.Reveal(), Secret: m.Webhook.Secret.Reveal()}
	}
	return findings.MCP{
		URL: m.MCP.URL, Transport: transport, Key: m.MCP.APIKey.Reveal(),
		Tool: cmp.Or(m.MCP.Tool, findings.DefaultTool), Arguments: cmp.Or(m.MCP.Arguments, findings.DefaultArguments),
	}
}
