package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// send makes the request upstream.
func (s *Server) send(r *request, parts [][]byte) (*http.Response, error) {
	url, err := target(r.tenant.Upstream.BaseURL, r.path, r.query)
	if err != nil {
		return nil, err
	}
	if r.tenant.Upstream.APIKey != "" {
		r.header.Set("Authorization", "Bearer "+r.tenant.Upstream.APIKey)
		r.header.Del("X-Api-Key")
		r.header.Del("Api-Key")
	}
	r.seen.sending()
	out := outbound{Method: r.method, URL: url, Header: r.header, Parts: parts, Held: r.body}
	resp, err := s.o.Upstream.RoundTrip(out.request(r.ctx))
	if err != nil {
		err = upstreamError(r.ctx, err)
	}
	r.seen.answered(resp, err)
	return resp, err
}

// relay hands upstream's response to the client, and what was learnt from it to the log.
func (s *Server) relay(ctx *fasthttp.RequestCtx, r *request, t *turn, resp *http.Response) {
	rel := &relay{
		from: resp, idle: s.o.Limits.StreamIdle, cancel: r.cancel, uncut: cutOff(r.ctx, ctx.Conn()),
		state: outcome{Status: resp.StatusCode}, seen: &r.seen,
	}
	incoming(&ctx.Response.Header, resp)
	if r.dialect != nil && resp.Header.Get("Content-Encoding") == "" {
		rel.tee = r.dialect.Tee(streamed(resp.Header))
	}
	if t != nil {
		s.describe(ctx, t)
	}
	if t != nil && t.logged != nil && resp.StatusCode == http.StatusOK {
		rel.last = func() {
			defer r.seen.held(s.o.Now())
			s.remember(t, rel.tee)
		}
	}
	rel.ended = func(o outcome) {
		defer r.release()
		s.settle(r, o)
		s.calibrate(t, o)
		r.seen.relayed(o)
	}
	if t != nil && streamed(resp.Header) && strings.EqualFold(r.client("X-Dewpoint-Notify"), "comment") {
		if notice := t.notice(); notice != "" {
			rel.first = []byte(": " + notice + "\n\n")
		}
	}
	if r.method == http.MethodHead {
		rel.skip(&ctx.Response)
		return
	}
	rel.start(&ctx.Response)
}

// describe tells the client what was done to its request.
func (s *Server) describe(ctx *fasthttp.RequestCtx, t *turn) {
	h := &ctx.Response.Header
	before, after := t.counted().before, s.sent(t)
	h.Set("X-Dewpoint-Session", string(t.place.Thread.Session))
	h.Set("X-Dewpoint-Thread", string(t.place.Thread.ID))
	h.Set("X-Dewpoint-Events", fmt.Sprintf("%d;%d", before.Events, after.Events))
	adjust := func(n int) int { return s.o.Tokens.Adjust(t.split.Model, n) }
	h.Set("X-Dewpoint-Tokens", fmt.Sprintf("%d;%d", adjust(before.Tokens), adjust(after.Tokens)))
	for _, c := range t.report {
		h.Add("X-Dewpoint-Condensed", fmt.Sprintf("%s; %d; %d", c.Reason, c.Events, c.Tokens))
	}
	if t.due != "" {
		h.Set("X-Dewpoint-Due", string(t.due))
	}
	if notice := t.notice(); notice != "" {
		h.Set("X-Dewpoint-Notice", notice)
	}
	t.seen.forwarded(after)
}

// sent measures what went upstream.
func (s *Server) sent(t *turn) session.Size {
	if t.wish == "off" || t.tenant.Observe {
		return t.counted().before
	}
	return s.size(t)
}

// logAppend writes the request's new messages to the log, beside the call upstream. It is done before the client has its
// whole answer, so that the client's next request finds it. If it does not succeed, the next request repairs it.
func (s *Server) logAppend(t *turn) {
	select {
	case s.pending <- struct{}{}:
	default:
		s.o.Metrics.skipped()
		return
	}
	t.body.hold() // events alias it
	t.logged = make(chan struct{})
	place := t.place
	s.beside(func() {
		defer func() { <-s.pending }()
		defer t.body.release()
		defer close(t.logged)
		tally := t.counted().tally
		ctx, cancel := context.WithTimeout(s.ctx, s.o.Limits.Store)
		defer cancel()
		if err := t.registry.Append(ctx, &place, &tally); err != nil {
			s.degraded.note("append", err)
			return
		}
		if place.Logged > t.place.Logged {
			s.degraded.wrote()
		}
		t.placed = place
	})
}

// beside does work beside a request, or in line with it where the server is about to end.
func (s *Server) beside(work func()) {
	guarded := func() {
		defer func() {
			if v := recover(); v != nil {
				s.panicked(v)
			}
		}()
		work()
	}
	if !s.after.run(guarded) {
		guarded()
	}
}

// calibrate takes what an answer tells: usage for the calibration.
func (s *Server) calibrate(t *turn, o outcome) {
	if t == nil || o.Status != http.StatusOK {
		return
	}
	if u := o.Answer.Usage; u != nil {
		s.o.Tokens.Observe(t.split.Model, s.sent(t).Tokens, u.Input)
	}
	t.seen.used(o.Answer.Usage)
}

// remembering is how long the end of an answer waits at most for the log. What is late is written all the same.
const remembering = 250 * time.Millisecond

// remember marks what was relayed, so that the client can be recognised by it. It is done before the end of the answer
// is handed on: whoever has an answer may refer to it.
func (s *Server) remember(t *turn, tee dialect.Tee) {
	var answer dialect.Answer
	if tee != nil {
		answer = tee.Answer()
	}
	var ids, arguments []string
	for _, c := range answer.Calls {
		ids = append(ids, c.ID)
		arguments = append(arguments, argumentTexts(c.Arguments)...)
	}
	done := make(chan struct{})
	s.beside(func() {
		defer close(done)
		<-t.logged
		if t.placed.Thread.ID == "" {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.o.Limits.Store)
		defer cancel()
		err := t.registry.Answered(ctx, &t.placed, answer.Text, ids, arguments)
		if err != nil && !errors.Is(err, session.ErrNotFound) { // not found: the session was deleted meanwhile
			s.degraded.note("mark answer", err)
		}
	})
	late := time.NewTimer(remembering)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// condenseFailed counts a condensation that did not come about. The request goes on with the view as it was.
func (s *Server) condenseFailed(t *turn, need condense.Need, err error) {
	s.o.Metrics.notCondensed(t.tenant.Name, t.tenant.Condenser.Name(), need.Reason)
	s.o.Log.Warn("not condensed", zap.String("tenant", t.tenant.Name), zap.String("reason", string(need.Reason)),
		zap.String("thread", string(t.place.Thread.ID)), zap.Error(err))
}

// cooled tells the cooldown how the summariser did, counts a summary that was no good, and says in the log why a history
// was shortened without a summary. A client that left says nothing of the summariser, nor does a prompt that could not
// be made.
func (s *Server) cooled(t *turn, result condense.Result, err error) {
	if err == nil && result.Fallback != nil {
		err = result.Fallback
		s.o.Log.Warn("condensed without a summary", zap.String("tenant", t.tenant.Name),
			zap.String("thread", string(t.place.Thread.ID)), zap.Error(err))
	}
	var bad *condense.SummaryError
	if errors.As(err, &bad) {
		s.o.Metrics.badSummary(t.tenant.Name, bad.Kind)
	}
	switch {
	case err == nil && result.Condensation.Model == "": // nobody was called
	case err == nil:
		t.tenant.Cooldown.Succeeded()
	case errors.Is(err, condense.ErrCooling), bad != nil && bad.Kind == condense.FaultTooLarge:
	case context.Cause(t.ctx) == nil:
		t.tenant.Cooldown.Failed(s.o.Now())
	}
}
