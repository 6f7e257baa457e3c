package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// handle is fasthttp's handler, and the way of a request: accepted, recognised, condensed, sent, relieved if upstream finds
// it too long, relayed.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := s.begun(ctx, requestID(ctx.Request.Header.Peek(givenID)))
	defer func() {
		if s.draining.Load() {
			ctx.SetConnectionClose()
		}
	}()
	defer r.abandon() // after what is told of its end, for which its body is counted
	if !s.o.survives(func() {
		if err := r.serve(ctx); err != nil {
			r.refuse(ctx, err)
		}
	}) {
		e := errInternal
		e.Close = true
		r.refuse(ctx, e)
	}
}

// serve takes a request from its header to the relay of its answer.
func (r *request) serve(ctx *fasthttp.RequestCtx) error {
	err := r.accept(ctx)
	if err != nil {
		return err
	}
	if r.orAsItCame(func() { err = r.recognise() }); err != nil {
		return err
	}
	l := &relay{r: r}
	if r.turn != nil && r.asked.streams && r.server.o.Limits.KeepAlive > 0 {
		return l.attend(ctx)
	}
	l.from, l.err = r.answer() //nolint:bodyclose // Close does
	return l.hand(ctx)
}

// accept checks a request, reads its body and begins to watch its client.
func (r *request) accept(ctx *fasthttp.RequestCtx) error {
	if err := screen(ctx); err != nil {
		return err
	}
	r.live = r.server.live.Load()
	r.asked = r.live.readAsked(ctx)
	if r.tenant = r.live.Tenants.of(r.asked.key); r.tenant == nil {
		return r.turnAway(ctx, errUnauthorized)
	}
	if r.tenant.Anonymous {
		r.asked.credential = credentialOf(r.tenant, r.asked.keys)
	}
	record := &r.seen.record
	record.Tenant, record.Condenser, record.Upstream = r.tenant.Name, r.tenant.Condenser.Name(), r.tenant.Upstream.BaseURL
	record.Asked.Method = r.asked.method
	if e, ok := r.admit(); !ok {
		return r.turnAway(ctx, e)
	}
	err := r.readBody(ctx)
	if r.header = outgoing(&ctx.Request.Header); err == nil {
		err = r.unpack()
	}
	if err != nil {
		r.countRefused(err)
		return err
	}
	r.begin(ctx)
	return nil
}

// exchange takes a recognised request to upstream's answer.
func (r *request) exchange() (*http.Response, error) {
	r.orAsItCame(r.ration)
	r.orAsItCame(func() { r.patiently(r.condense) })
	if err := r.ctx.Err(); err != nil { // the client left while it waited
		return nil, upstreamError(r.ctx, err)
	}
	resp, err := r.buy()
	if err == nil {
		resp, err = r.strain(resp)
	}
	return resp, err
}

// buy gets an answer of upstream's, which limits and budgets are charged for.
func (r *request) buy() (*http.Response, error) {
	if err := r.pay(); err != nil {
		return nil, err
	}
	resp, err := r.send(r.forwarded())
	if err == nil && (r.turn != nil || r.sealed()) {
		resp, err = r.persist(resp)
	}
	var e apiError
	if errors.As(err, &e) && e.Code == codeUnreachable { // one that did not answer in time, or whose client left, may have cost it all
		r.giveBack()
	}
	return resp, err
}

// orAsItCame takes a step that a request can go without: where it panics, the body goes upstream as it came.
func (r *request) orAsItCame(step func()) {
	if !r.server.o.survives(step) {
		r.turn = nil
	}
}

// recognise begins the request's turn. There is none where the body goes as it came: for other paths, and when the store is
// away.
func (r *request) recognise() error {
	if r.asked.dialect == nil {
		return nil
	}
	r.header.Set("Accept-Encoding", "identity") // the answer is read along
	if r.seen.record.Unread == "" && r.asked.odd {
		r.pass(unreadPath)
	}
	if r.seen.record.Unread != "" {
		return nil
	}
	if d := r.compactor(); d != nil {
		r.manage(d)
		if r.asked.compact || d.Concerns(r.body.bytes) {
			if err := r.unseal(d); err != nil {
				return err
			}
			r.wantCompaction(d)
		}
	}
	split, err := r.asked.dialect.Split(r.body.bytes)
	if err != nil {
		var refused *dialect.Error
		if errors.As(err, &refused) && refused.Code != dialect.CodeUnsupported {
			e := badRequest(refused.Code, refused.Message)
			e.Param = refused.Param
			return e
		}
		r.pass(unreadUnsupported)
		return nil
	}
	if split.Model == "" {
		split.Model = r.asked.model
	}
	r.passed.split, r.model, r.asked.streams = split, r.live.Models(split.Model), split.Stream || r.passed.compaction.streamed
	r.seen.record.Model = cmp.Or(r.model.Name, OtherModel)
	turn, err := r.server.o.Engine.Begin(r.ctx, r.input(split))
	if err != nil {
		if r.ctx.Err() != nil {
			return upstreamError(r.ctx, err)
		}
		r.seen.record.Times.Resolved, r.seen.record.Condensed.Did = r.server.o.Now(), "store_away"
		r.server.degraded.enter(err)
		return nil
	}
	r.turn = turn
	r.server.degraded.leave()
	r.recognised()
	return nil
}

// condense has condensed what is due, and begins to write the log.
func (r *request) condense() {
	if r.turn == nil {
		return
	}
	if r.asked.counts {
		r.turn.Shape()
		return
	}
	r.note(r.turn.Condense(r.ctx))
	r.startLog()
}

// forwarded is the body that goes upstream.
func (r *request) forwarded() [][]byte {
	parts := [][]byte{r.body.bytes}
	switch {
	case r.passed.bared != nil:
		parts = r.passed.bared
	case r.turn != nil:
		r.orAsItCame(func() { parts = r.turn.Forwarded() })
	}
	return parts
}

// ended is when an answer was relayed, to its end or not.
func (r *request) ended(l *relay, told dialect.Answer) {
	status := l.from.StatusCode
	r.settleLater(status, r.last(told))
	if r.turn != nil && status == http.StatusOK {
		if r.passed.again > 0 { // it is the usage of several
			r.seen.record.Call.Doubted = true
		} else if told.Usage != nil {
			r.note(r.turn.Used(r.seen.record.Turn.After.Tokens, *told.Usage))
			r.turn.KeepWarm(*told.Usage)
		}
		r.seen.record.Call.Usage = told.Usage
		r.compare(told.Usage)
	}
	r.seen.record.Content = r.content(told)
	r.seen.relayed(status, l.end)
	r.save()
}

// content is what the log is told of what was said: only for a tenant whose LogContent is set.
func (r *request) content(answer dialect.Answer) *Content {
	if r.asked.dialect == nil || r.seen.record.Unread != "" || !r.tenant.LogContent {
		return nil
	}
	c := &Content{Request: r.body.bytes, Answer: answer}
	if parts := r.forwarded(); len(parts) > 1 {
		c.Forwarded = parts
	}
	return c
}

// save adds what was saved of the answered request to what its thread saved so far, if anything was.
func (r *request) save() {
	turn, t := r.turn, r.seen.record.Turn
	if t == nil || turn == nil || t.Saved == (Saving{}) || !r.server.reserve("save") {
		return
	}
	more := session.Savings{Tokens: int64(t.Saved.Tokens), NotSent: model.Nano(t.Saved.NotSent), Rewritten: model.Nano(t.Saved.Rewritten)}
	if !r.model.Price.Known() {
		more.Unpriced = r.seen.record.Model
	}
	r.server.write("save", func(ctx context.Context) error { return turn.Save(ctx, more) })
}

// compare adds an answered request to what its tenant's holdout compares, if that has one.
func (r *request) compare(u *session.Usage) {
	turn, price := r.turn, r.model.Price
	if r.asked.counts || !turn.Compared() {
		return
	}
	doubted := r.seen.record.Call.Doubted && r.passed.again == 0 // of several it is no measure of the prompt, but a sum to be paid
	known, usd := u != nil && price.Known() && !doubted, 0.0
	if known {
		usd = price.Call(model.Usage(*u))
	}
	if r.server.reserve("compare") {
		r.server.write("compare", func(ctx context.Context) error { return turn.Compare(ctx, usd, known) })
	}
}

// startLog writes the request's new messages to the log while the call upstream is under way. It is done before the client
// has its whole answer, so that the client's next request finds it. If it does not succeed, the next request repairs it.
func (r *request) startLog() {
	if r.turn.Probes() || !r.server.reserve("append") {
		return
	}
	log := r.turn.Log()
	r.server.write("append", func(ctx context.Context) error {
		wrote, err := log(ctx)
		if wrote && err == nil {
			r.server.degraded.wrote()
		}
		return err
	})
}

// remembering is how long the end of an answer waits at most for the log. What is late is written all the same.
const remembering = 250 * time.Millisecond

// remember marks what was relayed, so that the client can be recognised by it. It is done before the end of the answer
// is handed on: a client that has an answer may refer to it.
func (r *request) remember(tee dialect.Tee) {
	s := r.server
	defer func(since time.Time) { r.seen.record.Times.Held = max(s.o.Now().Sub(since), 1) }(s.o.Now())
	var answer dialect.Answer
	if tee != nil {
		answer = tee.Answer()
	}
	if record := r.passed.compaction.record; record != "" {
		answer.Text = record // as which the client's item is read when it comes back
	}
	mark := r.turn.Answered(answer, r.echo())
	minute, budgets := r.settle(http.StatusOK, r.last(answer))
	done := make(chan struct{})
	s.inBackground(func() {
		defer close(done)
		if minute != nil {
			minute()
			budgets()
		}
		if err := mark(s.ctx); err != nil {
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
