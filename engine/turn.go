package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Input is all that a turn is told of the request that it is for.
type Input struct {
	Settings   *Settings // in force when the request came
	Tenant     *Tenant
	Upstream   condense.Endpoint        // where the request goes, for condensers without a model of their own
	Credential string                   // of the client
	Header     func(name string) string // reads the client's header; called by Begin only
	Wish       Wish
	Dialect    dialect.Dialect
	Split      *dialect.Request
	Model      Model // that Split names
	Body       Body  // that Split aliases

	// Condensing is told when a condensation begins: the context that it returns is for what the condensation calls, and the
	// function is called at its end, with what was made. It may be nil.
	Condensing func(context.Context, condense.Need) (context.Context, func([]Condensed))
}

// Wish is what the client wants condensed.
type Wish string

// The wishes of clients.
const (
	WishNone Wish = ""
	WishNow  Wish = "now" // condense, whether it is due or not
	WishOff  Wish = "off" // forward unchanged
)

// Body is the bytes that a request came in. They are reused when all who hold them have released them.
type Body interface {
	Bytes() []byte
	Hold()
	Release()
}

// Turn is what one request goes through: recognised, projected, condensed, forwarded, logged. It is used by one goroutine
// at a time, except for what Log and Answered return.
type Turn struct {
	in       Input
	engine   *Engine
	registry *session.Registry
	store    session.Store
	counter  Counter
	model    Model // with the window that was learnt
	history  *session.History
	purpose  session.Purpose
	place    session.Resolution
	counted  func() *counts // counts at the first call, in whichever goroutine that is
	shown    projection
	made     []Condensed
	scale    float64 // upstream's count of this request over ours, where it told
	logged   *logging
}

// Condensed is one condensation that a turn made.
type Condensed struct {
	Reason        session.Reason
	Events        int // fewer
	Tokens        int // fewer
	Before, After int // tokens
}

// projection is a view, and how it came about.
type projection struct {
	view    session.View
	applied []session.Condensation
	shaped  bool // a condenser made the view another one than the log gives
}

// Begin finds the thread that a request continues, and projects its view.
func (e *Engine) Begin(ctx context.Context, in Input) (*Turn, error) {
	t := &Turn{in: in, engine: e, model: in.Model}
	if err := t.resolve(ctx); err != nil {
		return nil, err
	}
	t.prepareCounting()
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Store)
	defer cancel()
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil {
		return nil, fmt.Errorf("read condensations: %w", err)
	}
	t.show(t.project(applied))
	return t, nil
}

// resolve looks the history up in the log.
func (t *Turn) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	registry, store, secret, err := t.engine.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	t.registry, t.store = registry, store
	id := t.in.Settings.identify(t.in.Header, t.in.Split.Fields)
	scope := t.in.Tenant.scope(secret, t.in.Credential, id.Key)
	t.history = session.NewHistory(secret.Seed(scope), t.in.Split.Messages)
	t.purpose = t.readPurpose()
	t.place, err = registry.Resolve(ctx, session.Query{
		Scope: scope, Parent: id.Parent, Purpose: t.purpose, History: t.history, Texts: t.texts,
	})
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	return nil
}

// prepareCounting looks up what was learnt of the request's model, and how its tokens are counted. They are counted when
// they are asked for, which for most requests is while the call upstream is under way.
func (t *Turn) prepareCounting() {
	e := t.engine
	t.counter = e.o.Tokens.Counter(t.in.Split.Model)
	t.model.Window = e.learnt.window(t.in.Tenant.Name, t.in.Split.Model, t.model.Window, e.o.Now())
	place := t.place
	t.counted = sync.OnceValue(func() *counts { return t.count(&place) })
}

// show makes a projection the one that is forwarded. Nothing else sets it.
func (t *Turn) show(p projection) { t.shown = p }

// project makes the view of the history under condensations.
func (t *Turn) project(applied []session.Condensation) projection {
	p := projection{view: session.Project(t.history, applied), applied: applied}
	for i := range p.view.Items {
		t.render(&p.view.Items[i])
	}
	return p
}

// reshaped is the view that a condenser made. What the model answered before was bound to another one, so no message shows
// its sealed reasoning any more.
func (t *Turn) reshaped(v session.View) projection {
	for i := range v.Items {
		item := &v.Items[i]
		if item.Index >= 0 && !item.Strip && t.in.Split.Messages[item.Index].Sealed {
			item.Strip = true
			t.strip(item)
		}
	}
	return projection{view: v, applied: t.shown.applied, shaped: true}
}

// render writes an item as the view shows it.
func (t *Turn) render(item *session.Item) {
	if item.Trim != nil {
		t.trim(item)
	}
	if item.Strip {
		t.strip(item)
	}
}

// strip leaves out an item's sealed reasoning. What cannot be read stays as it is.
func (t *Turn) strip(item *session.Item) {
	if raw, err := t.in.Dialect.StripReasoning(item.Raw); err == nil {
		item.Raw = raw
	}
}

// trim cuts an item's text as was decided when it came. What cannot be cut stays whole.
func (t *Turn) trim(item *session.Item) {
	c, err := t.in.Dialect.Read(item.Raw)
	if err != nil {
		return
	}
	if raw, err := t.in.Dialect.Rewrite(item.Raw, condense.RenderTrim(c.Text, *item.Trim)); err == nil {
		item.Raw = raw
	}
}

// unchanged reports whether the body goes upstream as it came, whatever the view.
func (t *Turn) unchanged() bool { return t.in.Wish == WishOff || t.in.Tenant.Observe }

// Forwarded is the request's body with the view in the place of its messages; below every threshold the body itself.
func (t *Turn) Forwarded() [][]byte {
	if t.shown.view.Identity() || t.unchanged() {
		return [][]byte{t.in.Body.Bytes()}
	}
	return t.in.Split.Join(t.messages())
}

// messages are the view's, as they go upstream.
func (t *Turn) messages() [][]byte {
	messages := make([][]byte, len(t.shown.view.Items))
	for i, item := range t.shown.view.Items {
		messages[i] = item.Raw
		if item.Index < 0 {
			messages[i] = t.in.Dialect.Note(item.Summary)
		}
	}
	return messages
}

// Place is where the log has the history.
func (t *Turn) Place() *session.Resolution { return &t.place }

// ModelName is the request's model, as the client spells it, bounded.
func (t *Turn) ModelName() string { return head(t.in.Split.Model) }

// Condensed is all that this turn has condensed so far.
func (t *Turn) Condensed() []Condensed { return t.made }

// Before measures the history as the client sent it, before calibration.
func (t *Turn) Before() session.Size { return t.counted().before }

// Sent measures what goes upstream, before calibration.
func (t *Turn) Sent() session.Size {
	if t.unchanged() {
		return t.Before()
	}
	return t.size()
}

// Known is how many tokens of the request had come before, 0 if none.
func (t *Turn) Known() int {
	c := t.counted()
	if c.tally.From == 0 {
		return 0
	}
	return c.fixed + c.tally.System + c.tally.Total(c.tally.From)
}

// Adjust corrects a count by what upstream has reported of the request's model.
func (t *Turn) Adjust(n int) int { return t.engine.Adjust(t.in.Split.Model, n) }
