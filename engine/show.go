package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Past is a logged history.
type Past struct {
	Tenant        string
	Model         string // selects the condenser, if they differ per model; may be empty
	Purpose       session.Purpose
	Dialect       string                 // of the messages; empty: Chat Completions
	Messages      [][]byte               // in the client's order, system messages included
	Kinds         []session.Kind         // of the messages in the log; none: as the messages themselves say
	Chain         []session.Hash         // of the messages that are not system messages
	Condensations []session.Condensation // of the thread, with their summaries; a lost summary is empty
}

// Shown is a Past as it would be forwarded. Sizes are uncalibrated and do not include tools, which are not logged.
type Shown struct {
	View          session.View
	Messages      [][]byte // as they go upstream
	Before, After session.Size
}

// results returns the indexes of those of the messages that are system messages, but were logged as results.
func (p *Past) results(messages []session.Message) (results []int) {
	for i, kind := range p.Kinds {
		if kind == session.Observation && messages[i].Kind == session.System {
			results = append(results, i)
		}
	}
	return results
}

// Show returns a logged history as it would be forwarded under the settings in force, without a further condensation.
func (e *Engine) Show(p Past) (Shown, error) {
	settings := e.settings.Load()
	t := &Turn{engine: e, in: Input{Settings: settings, Tenant: settings.tenant(p.Tenant), Dialect: settings.dialect(p.Dialect)}}
	if p.Purpose == session.PurposeKept && len(p.Condensations) == 0 { // it may not be known whole
		t.in.Tenant = t.in.Tenant.passive()
	}
	if t.in.Dialect == nil {
		return Shown{}, fmt.Errorf("show history: the wire protocol %q is not served", p.Dialect)
	}
	split, err := t.in.Dialect.Split("", t.in.Dialect.Compose(p.Messages))
	if err != nil {
		return Shown{}, fmt.Errorf("show history: read logged messages: %w", err)
	}
	split.Messages = asLogged(split.Messages, p.Messages)
	split = markResults(markTransient(t.in.Dialect, split), p.results(split.Messages))
	t.in.Split = &dialect.Request{Messages: split.Messages, Model: p.Model}
	if t.history, err = session.LoggedHistory(split.Messages, p.Chain); err != nil {
		return Shown{}, fmt.Errorf("show history: %w", err)
	}
	t.model, t.purpose = settings.Models(p.Model), p.Purpose
	t.prepareCounting()
	if t.in.Tenant.Passes() {
		p.Condensations = nil
	}
	f := t.form(readable(t.history, p.Condensations))
	f.shown.applied = f.shown.view.Applied
	if p.Purpose == session.PurposeCompaction {
		f, err = t.unabridged(f.shown.applied, func(some []session.Condensation) ([]session.Condensation, error) { // returns no error
			return readable(t.history, some), nil
		})
		if err != nil {
			return Shown{}, fmt.Errorf("show history: %w", err)
		}
	}
	f = f.Shape()
	return Shown{View: f.shown.view, Messages: f.messages(), Before: f.turn.Before(), After: f.size()}, nil
}

// Read decodes a logged message. A message that consists of several items of a list, as in the Responses API, is read as one.
func (e *Engine) Read(protocol string, raw []byte) (session.Content, error) {
	d := e.settings.Load().dialect(protocol)
	if d == nil {
		return session.Content{}, fmt.Errorf("read message: the wire protocol %q is not served", protocol)
	}
	split, err := d.Split("", d.Compose([][]byte{raw}))
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	var all session.Content
	for i := range split.Messages {
		c, err := d.Read(split.Messages[i].Raw)
		if err != nil {
			return session.Content{}, fmt.Errorf("read message: %w", err)
		}
		all = joined(all, c)
	}
	return all, nil
}

// joined returns the content of two parts of one message.
func joined(a, b session.Content) session.Content {
	if a.Text != "" && b.Text != "" {
		b.Text = a.Text + "\n" + b.Text
	}
	b.Text, b.Role, b.Result, b.Name = cmp.Or(b.Text, a.Text), cmp.Or(a.Role, b.Role), cmp.Or(a.Result, b.Result), cmp.Or(a.Name, b.Name)
	b.Reasoning = cmp.Or(a.Reasoning, b.Reasoning)
	b.Calls, b.Images, b.Files = slices.Concat(a.Calls, b.Calls), slices.Concat(a.Images, b.Images), slices.Concat(a.Files, b.Files)
	return b
}

// asLogged returns the messages with these payloads, which together were split as given. A message that referred to several items may have been
// split into several messages; they become one.
func asLogged(split []session.Message, payloads [][]byte) (all []session.Message) {
	for _, raw := range payloads {
		var m session.Message
		for len(m.Raw) < len(raw) && len(split) > 0 {
			next := split[0]
			if split = split[1:]; m.Raw == nil {
				m = next
				continue
			}
			m.Raw = raw[:min(len(m.Raw)+len(",")+len(next.Raw), len(raw))]
			m.Calls, m.Kind = slices.Concat(m.Calls, next.Calls), max(m.Kind, next.Kind)
			m.Attached, m.Sealed = m.Attached || next.Attached, m.Sealed || next.Sealed
		}
		all = append(all, m)
	}
	return all
}

// Shape returns the form with the view that the tenant's condenser makes for each request. It makes no condensation.
func (f *Form) Shape() *Form {
	if f.turn.in.Tenant.Passes() {
		return f
	}
	f, _ = f.shape(f.decide())
	return f
}

// readable returns the condensations that apply to a history, by the same rules as for a request.
func readable(h *session.History, all []session.Condensation) []session.Condensation {
	applied, _, _ := session.Legible(h, all, func(c *session.Condensation) (string, error) { // returns no other error
		if c.Summary == "" {
			return "", session.ErrNotFound
		}
		return c.Summary, nil
	})
	return applied
}

// Errors that Explain wraps.
var (
	ErrNotServed = errors.New("the wire protocol is not served")
	ErrUnread    = errors.New("the body cannot be read")
)

// Question is a request for Explain.
type Question struct {
	Tenant  string
	Dialect string                   // wire protocol of the body; empty: Chat Completions
	Header  func(name string) string // reads a request header
	Query   string                   // of the request's URL
	Body    []byte
}

// Explanation says which thread a request belongs to, and why.
type Explanation struct {
	session.Divergence
	Relation session.Relation
	Session  session.SessionID // empty: a new one
	Thread   session.ThreadID  // that the request continues; empty: it begins one
	Source   session.Source
	Purpose  session.Purpose
	Key      string         // the session key that the client sent; empty: none
	Known    int            // number of known messages, without system prompts
	Message  int            // index in the request of the first message that differs; -1: none does
	Here     string         // an excerpt of that message, from shortly before the first byte that differs
	There    string         // the same excerpt of the thread's message; empty if content is not logged
	Keyless  *session.Place // where the history would belong without its key; nil: nowhere, or it has no key
}

// Explain finds the thread that a request would continue, and where its history diverges from the most similar one. It writes nothing.
// Errors are ErrNotServed, ErrUnread or the store's.
func (e *Engine) Explain(ctx context.Context, q Question) (Explanation, error) {
	settings := e.settings.Load()
	_, credential := Credential(q.Header, q.Query)
	t := &Turn{engine: e, in: Input{
		Settings: settings, Tenant: settings.tenant(q.Tenant), Dialect: settings.dialect(q.Dialect),
		Client: Client{Credential: credential, Header: q.Header},
	}}
	if t.in.Dialect == nil {
		return Explanation{}, fmt.Errorf("explain: %w: %q", ErrNotServed, q.Dialect)
	}
	var err error
	if t.in.Split, err = t.in.Dialect.Split("", q.Body); err != nil {
		return Explanation{}, fmt.Errorf("explain: %w: %w", ErrUnread, err)
	}
	if err := t.resolve(ctx); err != nil {
		return Explanation{}, fmt.Errorf("explain: %w", err)
	}
	x := Explanation{
		Relation: t.place.Relation(), Source: t.place.Source, Purpose: t.purpose, Known: t.place.Known.Pos, Message: -1,
	}
	x.Key, _ = settings.identify(q.Header, t.in.Split.Fields)
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

// explain sets what x says about the divergence, and about the history without its key.
func (t *Turn) explain(ctx context.Context, x *Explanation) (err error) {
	if x.Divergence, err = t.registry.Diverges(ctx, &t.place); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if p := x.Pos; p > 0 && p <= t.history.Len() {
		x.Message = t.history.At(p)
		if there := x.Divergence.There; there != nil && len(there.Payload) > 0 {
			x.Here, x.There = excerpts(t.history.Message(p).Raw, there.Payload)
		}
	}
	if x.Key == "" || x.Relation.Kind != session.RelationNew {
		return nil
	}
	keyless := *t
	keyless.in.Settings = &Settings{} // configures no header or field with a key
	if err := keyless.resolve(ctx); err != nil {
		return fmt.Errorf("explain without the session key: %w", err)
	}
	if known := keyless.place.Known; known.Known() {
		x.Keyless = &known
	}
	return nil
}

// Length of excerpts, and how much of it comes before the first difference, in bytes.
const (
	excerptLen    = 240
	excerptBefore = 60
)

// excerpts returns excerpts of two texts, from shortly before the first byte that differs.
func excerpts(a, b []byte) (here, there string) {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	from := max(0, n-excerptBefore)
	cut := func(text []byte) string {
		text = text[min(from, len(text)):]
		text = text[:min(excerptLen, len(text))]
		return string(bytes.ToValidUTF8(text, nil))
	}
	return cut(a), cut(b)
}
