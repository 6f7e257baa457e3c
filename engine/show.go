package engine

import (
	"bytes"
	"context"
	"errors"
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
	if t.in.Dialect == nil {
		return Shown{}, fmt.Errorf("show history: the wire protocol %q is not served", p.Dialect)
	}
	split, err := t.in.Dialect.Split(t.in.Dialect.Compose(p.Messages))
	if err != nil {
		return Shown{}, fmt.Errorf("show history: read logged messages: %w", err)
	}
	split = lasting(t.in.Dialect, split)
	t.in.Split = &dialect.Request{Messages: split.Messages, Model: p.Model}
	if t.history, err = session.LoggedHistory(split.Messages, p.Chain); err != nil {
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

// Errors of Explain, wrapped.
var (
	ErrNotServed = errors.New("the wire protocol is not served")
	ErrUnread    = errors.New("the body is not one that is read")
)

// Question is a request of which it is asked where it belongs.
type Question struct {
	Tenant  string
	Dialect string                   // wire protocol of the body; empty: Chat Completions
	Header  func(name string) string // reads the client's header
	Query   string                   // of the client's URL
	Body    []byte
}

// Explanation is where a request belongs, and why there.
type Explanation struct {
	session.Divergence
	Relation session.Relation
	Session  session.SessionID // empty: a new one
	Thread   session.ThreadID  // that it continues, empty if it begins one
	Source   session.Source
	Purpose  session.Purpose
	Key      string         // by which the client names its session, empty if it does not
	Known    int            // messages, system prompts aside, that are known
	Message  int            // index in the request of the first message that differs, -1 if none does
	Here     string         // what that says, from a little before the first byte that differs
	There    string         // what the thread has there; empty if it does not keep content
	Keyless  *session.Place // what is known of the history without its key; nil: nothing, or it has none
}

// Explain tells which thread a request would continue, and where its history leaves the one that is most like it. It writes nothing. An
// error is ErrNotServed, ErrUnread or the store's.
func (e *Engine) Explain(ctx context.Context, q Question) (Explanation, error) {
	settings := e.settings.Load()
	_, credential := Credential(q.Header, q.Query)
	t := &Turn{engine: e, in: Input{
		Settings: settings, Tenant: settings.tenant(q.Tenant), Dialect: settings.dialect(q.Dialect), Client: Client{Credential: credential, Header: q.Header},
	}}
	if t.in.Dialect == nil {
		return Explanation{}, fmt.Errorf("explain: %w: %q", ErrNotServed, q.Dialect)
	}
	var err error
	if t.in.Split, err = t.in.Dialect.Split(q.Body); err != nil {
		return Explanation{}, fmt.Errorf("explain: %w: %w", ErrUnread, err)
	}
	if err := t.resolve(ctx); err != nil {
		return Explanation{}, fmt.Errorf("explain: %w", err)
	}
	x := Explanation{
		Relation: t.place.Relation(), Source: t.place.Source, Purpose: t.purpose, Known: t.place.Known.Pos, Message: -1,
		Key: settings.identify(q.Header, t.in.Split.Fields).Key,
	}
	if !t.place.Begins {
		x.Session = t.place.Thread.Session
	}
	if !t.place.New {
		x.Thread = t.place.Thread.ID
	}
	if x.Relation.Kind == session.RelationFork {
		x.Known = t.place.Thread.ForkAt
	}
	return x, t.explain(ctx, &x)
}

// explain finds where the history leaves what was known.
func (t *Turn) explain(ctx context.Context, x *Explanation) (err error) {
	if x.Divergence, err = t.registry.Diverges(ctx, &t.place); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if p := x.Pos; p > 0 && p <= t.history.Len() {
		x.Message = t.history.At(p)
		if there := x.Divergence.There; there != nil && len(there.Payload) > 0 {
			x.Here, x.There = apart(t.history.Message(p).Raw, there.Payload)
		}
	}
	if x.Key == "" || x.Relation.Kind != session.RelationNew {
		return nil
	}
	keyless := *t
	keyless.in.Settings = &Settings{} // names no header and no field with a key
	if err := keyless.resolve(ctx); err != nil {
		return fmt.Errorf("explain without the session key: %w", err)
	}
	if known := keyless.place.Known; known.Known() {
		x.Keyless = &known
	}
	return nil
}

// excerpt is how much of a message is shown, in bytes, of that before what differs.
const (
	excerpt       = 240
	excerptBefore = 60
)

// apart shows two texts from a little before the first byte at which they differ.
func apart(a, b []byte) (here, there string) {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	from := max(0, n-excerptBefore)
	cut := func(text []byte) string {
		text = text[min(from, len(text)):]
		text = text[:min(excerpt, len(text))]
		return string(bytes.ToValidUTF8(text, nil))
	}
	return cut(a), cut(b)
}
