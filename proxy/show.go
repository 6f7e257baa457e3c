package proxy

import (
	"bytes"
	"fmt"
	"net/url"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Past is a history as the log has it.
type Past struct {
	Tenant        string
	Model         string // decides where condensers differ per model; empty: what holds for all others
	Purpose       session.Purpose
	Messages      [][]byte               // in the client's order, system messages included
	Chain         []session.Hash         // of those that are no system messages
	Condensations []session.Condensation // of the thread, with their summaries; one that is lost is empty
}

// Shown is how a Past is forwarded. Sizes are as the log counts: before calibration, and without the tools, which are not
// logged.
type Shown struct {
	View          session.View
	Messages      [][]byte // of the view's items, as they go upstream
	Before, After session.Size
}

// chatPath is the path of the dialect in which histories are logged.
const chatPath = "/chat/completions"

// Show gives a logged history as it is forwarded under the configuration in force, if nothing is condensed first. A tenant
// that is not configured any more has no condenser.
func (s *Server) Show(p Past) (Shown, error) {
	live := s.live.Load()
	t := &turn{request: &request{server: s, live: live, tenant: live.tenants.named(p.Tenant), dialect: live.dialects[chatPath]}}
	if t.tenant == nil {
		t.tenant = &Tenant{
			Name: p.Tenant, Condenser: condense.Noop{}, Cooldown: &condense.Cooldown{}, Upstream: UpstreamConfig{BaseURL: &url.URL{}},
		}
	}
	if err := t.reread(p); err != nil {
		return Shown{}, fmt.Errorf("show history: %w", err)
	}
	t.model = live.models(t.split.Model)
	s.know(t)
	t.applied, t.purpose = p.legible(t.history), p.Purpose
	t.project()
	t.applied = t.view.Applied
	if t.tenant.Observe {
		t.applied, t.view = nil, session.Project(t.history, nil)
	} else {
		s.shape(t)
	}
	return Shown{View: t.view, Messages: t.messages(), Before: t.counted().before, After: s.size(t)}, nil
}

// legible are the condensations that apply, as they do for a request.
func (p *Past) legible(h *session.History) []session.Condensation {
	applied, _, _ := session.Legible(h, p.Condensations, func(c *session.Condensation) (string, error) { // no other error
		if c.Summary == "" {
			return "", session.ErrNotFound
		}
		return c.Summary, nil
	})
	return applied
}

// reread splits logged messages as if they came in a request.
func (t *turn) reread(p Past) error {
	if t.dialect == nil {
		return fmt.Errorf("nothing is served at %s", chatPath)
	}
	body := bodyOf(p.Messages)
	split, err := t.dialect.Split(body)
	if err != nil {
		return fmt.Errorf("read logged messages: %w", err)
	}
	t.split = &dialect.Request{Messages: split.Messages, Model: p.Model}
	t.history, err = session.LoggedHistory(split.Messages, p.Chain)
	return err
}

// bodyOf makes a body of messages.
func bodyOf(messages [][]byte) []byte {
	return append(append([]byte(`{"model":"","messages":[`), bytes.Join(messages, []byte{','})...), "]}"...)
}

// shape lets the condenser make another view, as it does for every request, where that is what it does.
func (s *Server) shape(t *turn) {
	in := s.input(t)
	if t.purpose == session.PurposeCompaction && !overWindow(in) {
		return
	}
	if decision := t.tenant.Condenser.Condense(in); shapes(in, decision) {
		t.show(*decision.View)
	}
}
