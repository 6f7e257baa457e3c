package engine

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Past is a history as the log has it.
type Past struct {
	Tenant        string
	Model         string // decides where condensers differ per model; empty: what holds for all others
	Purpose       session.Purpose
	Dialect       string                 // of its messages; empty: Chat Completions
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

// Show gives a logged history as it is forwarded under the settings in force, if nothing is condensed first.
func (e *Engine) Show(p Past) (Shown, error) {
	settings := e.settings.Load()
	t := &Turn{engine: e, in: Input{Settings: settings, Tenant: settings.tenant(p.Tenant), Dialect: settings.dialect(p.Dialect)}}
	if p.Purpose == session.PurposeKept {
		t.in.Tenant = t.in.Tenant.passive()
	}
	if err := t.reread(p); err != nil {
		return Shown{}, fmt.Errorf("show history: %w", err)
	}
	t.model, t.purpose = settings.Models(p.Model), p.Purpose
	t.prepareCounting()
	shown := t.project(p.legible(t.history))
	shown.applied = shown.view.Applied
	if t.in.Tenant.Passes() {
		shown = t.project(nil)
	}
	t.show(shown)
	if p.Purpose == session.PurposeCompaction && !t.in.Tenant.Passes() {
		_ = t.unabridged(shown.applied, func(some []session.Condensation) ([]session.Condensation, error) { // no error
			p := Past{Condensations: some}
			return p.legible(t.history), nil
		})
	}
	t.Shape()
	return Shown{View: t.shown.view, Messages: t.messages(), Before: t.Before(), After: t.size()}, nil
}

// Shape shows the view as the tenant's condenser makes it for each request. Nothing is condensed.
func (t *Turn) Shape() {
	if !t.in.Tenant.Passes() {
		t.shape(t.decide())
	}
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
func (t *Turn) reread(p Past) error {
	if t.in.Dialect == nil {
		return fmt.Errorf("the wire protocol %q is not served", p.Dialect)
	}
	split, err := t.in.Dialect.Split(t.in.Dialect.Compose(p.Messages))
	if err != nil {
		return fmt.Errorf("read logged messages: %w", err)
	}
	split = lasting(t.in.Dialect, split)
	t.in.Split = &dialect.Request{Messages: split.Messages, Model: p.Model}
	t.history, err = session.LoggedHistory(split.Messages, p.Chain)
	return err
}
