package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// turn is what one request of a dialect goes through: recognised, projected, shrunk, forwarded.
type turn struct {
	*request
	split    *dialect.Request
	registry *session.Registry
	store    session.Store
	counter  Counter
	model    ModelInfo
	history  *session.History
	purpose  session.Purpose
	place    session.Resolution
	counted  func() *counts // counts at the first call, whichever goroutine that is in
	applied  []session.Condensation
	view     session.View
	shaped   bool // a condenser made the view another one than the log gives
	report   []condensed
	scale    float64            // upstream's count of this request over ours, where it told
	need     condense.Need      // what was asked for from outside, by upstream
	due      session.Reason     // what a tenant that only observes would have had condensed for
	logged   chan struct{}      // closed when the log write is over; nil if there was none
	placed   session.Resolution // where the log has it, once logged
}

// condensed is one condensation made in this turn.
type condensed struct {
	Reason        session.Reason
	Events        int // fewer
	Tokens        int // fewer
	Before, After int // tokens
}

// run takes a request from its body to the relay of its answer.
func (s *Server) run(ctx *fasthttp.RequestCtx, r *request) error {
	t, parts, err := s.condense(r)
	if err != nil {
		return err
	}
	if err := s.charge(r, t); err != nil {
		return err
	}
	resp, err := s.send(r, parts)
	if err == nil && t != nil {
		resp, err = s.relieve(t, resp) //nolint:bodyclose // the relay closes it
	}
	if err != nil {
		s.giveBack(r, err)
		return err
	}
	s.relay(ctx, r, t, resp)
	r.relayed = true
	return nil
}

// condense gives what goes upstream. The turn is nil where the body goes as it came: for other paths, and when the store
// is away.
func (s *Server) condense(r *request) (*turn, [][]byte, error) {
	asItCame := [][]byte{r.body.bytes}
	if r.dialect == nil {
		return nil, asItCame, nil
	}
	split, err := r.dialect.Split(r.body.bytes)
	if err != nil {
		var refused *dialect.Error
		if errors.As(err, &refused) && refused.Code != dialect.CodeUnsupported {
			e := errBadRequest(refused.Code, refused.Message)
			e.Param = refused.Param
			return nil, nil, e
		}
		return nil, asItCame, nil
	}
	t := &turn{request: r, split: split, model: r.live.models(split.Model)}
	r.seen.asked(t.model)
	r.header.Set("Accept-Encoding", "identity") // the answer is read along
	if err := s.recognise(t); err != nil {
		if r.ctx.Err() != nil {
			return nil, nil, upstreamError(r.ctx, err)
		}
		r.seen.unrecognised(err)
		s.degraded.enter(err)
		return nil, asItCame, nil
	}
	s.degraded.leave()
	s.shrink(t)
	s.logAppend(t)
	return t, t.forwarded(), nil
}

// recognise finds the thread that the request continues, and projects the view.
func (s *Server) recognise(t *turn) error {
	if err := s.resolve(t); err != nil {
		return err
	}
	s.know(t)
	if t.model.Name == "" {
		s.strangeModel(t.split.Model)
	}
	ctx, cancel := context.WithTimeout(t.ctx, s.o.Limits.Store)
	defer cancel()
	var err error
	if t.applied, err = t.registry.Condensations(ctx, &t.place); err != nil {
		return fmt.Errorf("read condensations: %w", err)
	}
	s.unreadable(t)
	t.project()
	t.seen.recognised(t)
	return nil
}

func (s *Server) resolve(t *turn) error {
	ctx, cancel := context.WithTimeout(t.ctx, s.o.Limits.Store)
	defer cancel()
	registry, store, secret, err := s.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	t.registry, t.store = registry, store
	id := t.live.identify.of(t.client, t.split.Fields)
	scope := t.tenant.scope(secret, t.key, id.Key)
	t.history = session.NewHistory(secret.Seed(scope), t.split.Messages)
	t.purpose = t.readPurpose()
	t.place, err = registry.Resolve(ctx, session.Query{
		Scope: scope, Parent: id.Parent, Purpose: t.purpose, History: t.history, Texts: t.texts,
	})
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	return nil
}

// project makes the view of the history under the thread's condensations.
func (t *turn) project() {
	t.view, t.shaped = session.Project(t.history, t.applied), false
	for i := range t.view.Items {
		t.render(&t.view.Items[i])
	}
}

// render writes an item as the view shows it.
func (t *turn) render(item *session.Item) {
	if item.Trim != nil {
		t.trim(item)
	}
	if item.Strip {
		t.strip(item)
	}
}

// strip leaves out an item's sealed reasoning. What cannot be read stays as it is.
func (t *turn) strip(item *session.Item) {
	if raw, err := t.dialect.StripReasoning(item.Raw); err == nil {
		item.Raw = raw
	}
}

// show makes the view what a condenser made of it. What the model answered before was bound to another one, so no message
// shows its sealed reasoning any more.
func (t *turn) show(v session.View) {
	for i := range v.Items {
		item := &v.Items[i]
		if item.Index >= 0 && !item.Strip && t.split.Messages[item.Index].Sealed {
			item.Strip = true
			t.strip(item)
		}
	}
	t.view, t.shaped = v, true
}

// trim cuts an item's text as was decided when it came. What can not be cut stays whole.
func (t *turn) trim(item *session.Item) {
	c, err := t.dialect.Read(item.Raw)
	if err != nil {
		return
	}
	if raw, err := t.dialect.Rewrite(item.Raw, condense.RenderTrim(c.Text, *item.Trim)); err == nil {
		item.Raw = raw
	}
}

// forwarded is the request's body with the view in the place of its messages; below every threshold the body itself.
func (t *turn) forwarded() [][]byte {
	if t.view.Identity() || t.wish == "off" || t.tenant.Observe {
		return [][]byte{t.body.bytes}
	}
	return t.split.Join(t.messages())
}

// messages are the view's, as they go upstream.
func (t *turn) messages() [][]byte {
	messages := make([][]byte, len(t.view.Items))
	for i, item := range t.view.Items {
		messages[i] = item.Raw
		if item.Index < 0 {
			messages[i] = t.dialect.Note(item.Summary)
		}
	}
	return messages
}
