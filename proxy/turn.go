package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/proxy/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// turn is what one request of a dialect goes through. Its fields are filled in from the top down.
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
	tally    session.Tally
	fixed    int // tokens of tools and priming
	applied  []session.Condensation
	view     session.View
	shaped   bool         // a condenser made the view another one than the log gives
	before   session.Size // the history as the client sent it
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
	relayed := false
	defer func() {
		if !relayed {
			r.release()
		}
	}()
	t, parts, err := s.condense(r)
	if err != nil {
		return err
	}
	resp, err := s.send(r, parts)
	if err == nil && t != nil {
		resp, err = s.relieve(t, resp) //nolint:bodyclose // the relay closes it
	}
	if err != nil {
		return err
	}
	s.relay(ctx, r, t, resp)
	relayed = true
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
	t := &turn{request: r, split: split}
	r.header.Set("Accept-Encoding", "identity") // the answer is read along
	if err := s.recognise(t); err != nil {
		if r.ctx.Err() != nil {
			return nil, nil, upstreamError(r.ctx, err)
		}
		s.degraded.enter(err)
		return nil, asItCame, nil
	}
	s.degraded.leave()
	s.shrink(t)
	s.logAppend(t)
	return t, t.forwarded(), nil
}

// recognise finds the thread that the request continues, counts what is new in it and projects the view. The store's
// deadline is for the store: counting takes what it takes.
func (s *Server) recognise(t *turn) error {
	if err := s.resolve(t); err != nil {
		return err
	}
	s.o.Metrics.recognised(t.place.Source)
	s.count(t)
	ctx, cancel := context.WithTimeout(t.ctx, s.o.Limits.Store)
	defer cancel()
	var err error
	if t.applied, err = t.registry.Condensations(ctx, &t.place); err != nil {
		return fmt.Errorf("read condensations: %w", err)
	}
	t.project()
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
		if item := &t.view.Items[i]; item.Trim != nil {
			t.trim(item)
		}
	}
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
	messages := make([][]byte, len(t.view.Items))
	for i, item := range t.view.Items {
		messages[i] = item.Raw
		if item.Index < 0 {
			messages[i] = t.dialect.Note(item.Summary)
		}
	}
	return t.split.Join(messages)
}

// readPurpose looks at the system prompt and the last message.
func (t *turn) readPurpose() session.Purpose {
	if t.history.Len() == 0 {
		return session.PurposeMain
	}
	last := t.history.Message(t.history.Len())
	if last.Kind != session.User {
		return session.PurposeMain
	}
	system := ""
	for i := range t.split.Messages {
		if m := &t.split.Messages[i]; m.Kind == session.System {
			system = t.text(m)
			break
		}
	}
	return session.PurposeOf(system, t.text(last))
}

func (t *turn) text(m *session.Message) string {
	c, err := t.dialect.Read(m.Raw)
	if err != nil {
		return ""
	}
	return c.Text
}

// textsRead bounds how many messages are searched for traces, from each end of a history.
const textsRead = 4

// texts gives the texts at both ends of the history, where clients put what they carry over from another.
func (t *turn) texts() []string {
	var out []string
	n := t.history.Len()
	for p := 1; p <= n; p++ {
		if p > textsRead && p <= n-textsRead {
			continue
		}
		if m := t.history.Message(p); m.Kind == session.User || m.Kind == session.Agent {
			out = append(out, t.text(m))
		}
	}
	return out
}

// shrink condenses while something is due, a bounded number of times. It never fails: where it can not, the view stays
// as it was.
func (s *Server) shrink(t *turn) {
	if t.wish == "off" {
		return
	}
	again := t.place.Again || t.place.Match == session.MatchReplay
	for made := 0; ; {
		in := s.input(t)
		if t.purpose == session.PurposeCompaction && !overWindow(in) {
			return // the agent is making its own summary: it must see what it summarises
		}
		decision := t.tenant.Condenser.Condense(in)
		if t.tenant.Observe {
			s.observed(t, decision)
			return
		}
		if decision.View != nil {
			t.view, t.shaped = *decision.View, true
		}
		if again && t.wish != "now" {
			return // what was forwarded once is forwarded again
		}
		if decision.Job == nil || made == s.o.Condenses || !s.make(t, decision.Job) {
			return
		}
		if decision.Job.Need().Reason != session.ReasonArrival {
			made++ // what is cut on arrival is cut once, and does not count
		}
	}
}

// observed reports what a tenant that only observes would have had done.
func (s *Server) observed(t *turn, decision condense.Decision) {
	if decision.Job != nil {
		t.due = decision.Job.Need().Reason
		s.o.Metrics.observed(t.tenant.Name, t.tenant.Condenser.Name(), t.due)
	}
}

func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }

// make carries out a condensation under its thread's lock, logs it and projects again. It reports whether another one
// may follow.
func (s *Server) make(t *turn, job condense.Job) bool {
	ctx, cancel := context.WithTimeout(t.ctx, s.o.Limits.Condense)
	defer cancel()
	unlock, err := s.claim(ctx, t)
	for errors.Is(err, session.ErrLocked) && t.need.Hard && s.pause(ctx) {
		unlock, err = s.claim(ctx, t) // upstream has refused the request: another's condensation is worth the wait
	}
	if err != nil {
		s.condenseFailed(t, job.Need(), err)
		return false
	}
	defer unlock()
	if changed, err := s.overtaken(ctx, t); err != nil || changed {
		return err == nil
	}
	result, err := job.Run(ctx)
	s.cooled(t, result, err)
	if err != nil {
		s.condenseFailed(t, job.Need(), err)
		return false
	}
	return s.log(ctx, t, result)
}

// claim logs what is new and takes the thread's lock.
func (s *Server) claim(ctx context.Context, t *turn) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Limits.Store)
	defer cancel()
	if err := t.registry.Append(ctx, &t.place, &t.tally); err != nil {
		return nil, fmt.Errorf("claim thread: %w", err)
	}
	if unlock, err = t.store.Lock(ctx, t.place.Thread.ID, s.o.Limits.CondenseLease); err != nil {
		return nil, fmt.Errorf("claim thread: %w", err)
	}
	return unlock, nil
}

// pause waits a moment, and reports whether there is any time left.
func (s *Server) pause(ctx context.Context) bool {
	wait := time.NewTimer(lockPause)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lockPause is how often a request that must be condensed asks for its thread's lock.
const lockPause = 100 * time.Millisecond

// overtaken reports whether somebody else condensed the thread since it was resolved; the view is then theirs.
func (s *Server) overtaken(ctx context.Context, t *turn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Limits.Store)
	defer cancel()
	before := len(t.place.Thread.Condensations)
	if err := t.registry.Refresh(ctx, &t.place); err != nil {
		return false, err
	}
	if len(t.place.Thread.Condensations) == before {
		return false, nil
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil {
		return false, err
	}
	t.applied = applied
	t.project()
	return true, nil
}

// durable is how many times as long as for a read is waited for a condensation to be written: it was paid for.
const durable = 5

// log writes a condensation and projects the view with it.
func (s *Server) log(ctx context.Context, t *turn, result condense.Result) bool {
	ctx, cancel := context.WithTimeout(ctx, durable*s.o.Limits.Store)
	defer cancel()
	c, err := t.registry.Condense(ctx, &t.place, &t.view, s.measured(t, result.Condensation))
	if err != nil {
		s.condenseFailed(t, condense.Need{Reason: result.Condensation.Reason}, err)
		return false
	}
	t.applied = append(t.applied, c)
	t.project()
	t.report = append(t.report, condensed{
		Reason: c.Reason, Events: c.Before.Events - c.After.Events, Tokens: c.Before.Tokens - c.After.Tokens,
		Before: c.Before.Tokens, After: c.After.Tokens,
	})
	s.o.Metrics.condensed(t.tenant.Name, t.tenant.Condenser.Name(), c, result.Fallback)
	return true
}
