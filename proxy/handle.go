package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// handle is fasthttp's handler, and the way of a request: accepted, recognised, condensed, sent, relieved if upstream finds
// it too long, relayed.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := &request{server: s}
	r.seen.begin(s, requestID(ctx.Request.Header.Peek(givenID)))
	ctx.Response.Header.Set(toldID, r.seen.record.Asked.ID)
	defer s.farewell(ctx)
	defer r.abandon() // after what is told of its end, for which its body is counted
	defer s.recovered(ctx, r)
	err := s.accept(ctx, r)
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		s.refuse(ctx, r, err)
	}
}

// accept checks a request, reads its body and begins to watch its client.
func (s *Server) accept(ctx *fasthttp.RequestCtx, r *request) error {
	if e := screen(ctx); e != nil {
		return e
	}
	r.live = s.live.Load()
	r.asked = r.live.readAsked(ctx)
	if r.tenant = r.live.tenants.of(r.asked.key); r.tenant == nil {
		s.discard(ctx)
		return closing(ctx, errUnauthorized())
	}
	if r.tenant.Anonymous {
		r.asked.credential = credentialOf(r.tenant, r.asked.keys)
	}
	r.seen.accepted(r)
	if e := r.admit(); e != nil {
		s.discard(ctx)
		return closing(ctx, e)
	}
	accepted := false
	defer func() {
		if !accepted {
			r.tenant.gate.leave()
		}
	}()
	var err error
	if r.body, err = r.readBody(ctx); err != nil {
		r.countRefused(err)
		return err
	}
	r.header = outgoing(&ctx.Request.Header)
	if err := r.unpack(); err != nil {
		r.dropBody()
		r.countRefused(err)
		return err
	}
	r.begin(ctx)
	accepted = true
	return nil
}

// run takes a request from its body to the relay of its answer.
func (r *request) run(ctx *fasthttp.RequestCtx) error {
	var err error
	if r.orAsItCame(func() { err = r.recognise() }); err != nil {
		return err
	}
	if r.turn != nil && r.asked.streams && r.server.o.Limits.KeepAlive > 0 {
		return r.attend(ctx)
	}
	resp, err := r.answer() //nolint:bodyclose // the relay closes it
	if err != nil {
		return err
	}
	r.relay(ctx, resp)
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
	if err := r.charge(); err != nil {
		return nil, err
	}
	if err := r.reserve(); err != nil {
		r.uncharge()
		return nil, err
	}
	resp, err := r.send(r.forwarded())
	if err == nil && (r.turn != nil || r.sealed()) {
		resp, err = r.persist(resp)
	}
	if err != nil {
		r.giveBack(err)
		return nil, err
	}
	return resp, nil
}

// orAsItCame takes a step that a request can go without: where it panics, the body goes upstream as it came.
func (r *request) orAsItCame(step func()) {
	defer func() {
		if v := recover(); v != nil {
			r.server.panicked(v)
			r.turn = nil
		}
	}()
	step()
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
			e := errBadRequest(refused.Code, refused.Message)
			e.Param = refused.Param
			return e
		}
		r.pass(unreadUnsupported)
		return nil
	}
	if split.Model == "" {
		split.Model = r.asked.model
	}
	r.passed.split, r.model, r.asked.streams = split, r.live.models(split.Model), split.Stream || r.passed.compaction.streamed
	r.seen.named(r.model)
	turn, err := r.server.o.Engine.Begin(r.ctx, r.input(split))
	if err != nil {
		if r.ctx.Err() != nil {
			return upstreamError(r.ctx, err)
		}
		r.seen.unrecognised()
		r.server.degraded.enter(err)
		return nil
	}
	r.turn = turn
	r.server.degraded.leave()
	r.noteRecognised()
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

// relay hands upstream's response to the client, and what was learnt from it to the log.
func (r *request) relay(ctx *fasthttp.RequestCtx, resp *http.Response) {
	incoming(&ctx.Response.Header, resp)
	ctx.Response.Header.Set(toldID, r.seen.record.Asked.ID)
	rel := r.relayOf(resp, &ctx.Response.Header)
	rel.uncut = listen.CutOff(r.ctx, ctx.Conn())
	r.lease.relayed = true
	if r.asked.method == http.MethodHead {
		rel.skip(&ctx.Response)
		return
	}
	rel.start(&ctx.Response)
}

// relayOf prepares the relay of a response, and tells in a header what was done to the request.
func (r *request) relayOf(resp *http.Response, header *fasthttp.ResponseHeader) *relay {
	rel := &relay{
		from: resp, idle: r.server.o.Limits.StreamIdle, cancel: r.cancel, ended: r.ended,
		state: outcome{Status: resp.StatusCode}, arrived: r.seen.firstByte, panicked: r.server.panicked,
	}
	if s, is := resp.Body.(*strained); is {
		s.relay, rel.arrived = rel, func() {} // it says so itself
	}
	if r.asked.dialect != nil && resp.Header.Get("Content-Encoding") == "" {
		r.orAsItCame(func() { rel.tee = r.asked.dialect.Tee(streamed(resp.Header)) })
	}
	if why := r.seen.record.Unread; why != "" {
		header.Set("X-Dewpoint-Unread", why)
	}
	if r.turn != nil {
		r.orAsItCame(func() { r.describe(header) })
	}
	if r.turn != nil {
		if r.turn.Logs() && resp.StatusCode == http.StatusOK {
			rel.last = func() { r.remember(rel.tee) }
		}
		if streamed(resp.Header) && r.asked.comment {
			rel.first = asComment(r.notice())
		}
	}
	if !r.tenant.LogContent && r.turn == r.seen.turn && r.passed.strainer == nil { // else its end is told of what was said, counted late, or sent again
		r.dropBody()
	}
	return rel
}

// ended is when the relay is over.
func (r *request) ended(o outcome) {
	defer r.release()
	last := r.last(o.Answer)
	r.settle(o.Status, last)
	r.finish(r.lease.purse.used(o.Status, last))
	if r.turn != nil && o.Status == http.StatusOK {
		if r.passed.again > 0 { // it is the usage of several
			r.seen.record.Call.Doubted = true
		} else if o.Answer.Usage != nil {
			r.note(r.turn.Used(r.seen.record.Turn.After.Tokens, *o.Answer.Usage))
			r.turn.KeepWarm(*o.Answer.Usage)
		}
		r.seen.used(o.Answer.Usage)
		r.compare(o.Answer.Usage)
	}
	r.seen.record.Content = r.content(o.Answer)
	r.seen.relayed(o)
	r.save()
}

// save adds what was saved of the answered request to what its thread saved so far, if anything was.
func (r *request) save() {
	s, t := r.server, r.seen.record.Turn
	if t == nil || r.turn == nil || t.Saved == (Saving{}) || !s.reserve("save_queue_full") {
		return
	}
	more := session.Savings{Tokens: int64(t.Saved.Tokens), NotSent: model.Nano(t.Saved.NotSent), Rewritten: model.Nano(t.Saved.Rewritten)}
	if !r.model.Price.Known() {
		more.Unpriced = r.seen.record.Model
	}
	turn := r.turn
	s.reserved(func() {
		if err := turn.Save(s.ctx, more); err != nil {
			s.degraded.note("save", err)
		}
	})
}

// compare adds an answered request to what its tenant's holdout compares, if that has one.
func (r *request) compare(u *session.Usage) {
	turn, price, s := r.turn, r.model.Price, r.server
	if r.asked.counts || !turn.Compared() {
		return
	}
	doubted := r.seen.record.Call.Doubted && r.passed.again == 0 // of several it is no measure of the prompt, but a sum to be paid
	known, usd := u != nil && price.Known() && !doubted, 0.0
	if known {
		usd = price.Call(model.Usage(*u))
	}
	if !s.reserve("compare_queue_full") {
		return
	}
	s.reserved(func() {
		if err := turn.Compare(s.ctx, usd, known); err != nil {
			s.degraded.note("compare", err)
		}
	})
}

// reserve takes one of the places for writes in the background. If there is none, what was to be written is lost.
func (s *Server) reserve(lost string) bool {
	select {
	case s.pending <- struct{}{}:
		return true
	default:
		s.o.Faults.Lost(lost)
		return false
	}
}

// reserved does work in the background for which a place was reserved.
func (s *Server) reserved(work func()) {
	s.inBackground(func() {
		defer func() { <-s.pending }()
		work()
	})
}

// startLog writes the request's new messages to the log while the call upstream is under way. It is done before the client
// has its whole answer, so that the client's next request finds it. If it does not succeed, the next request repairs it.
func (r *request) startLog() {
	if r.turn.Probes() {
		return
	}
	s := r.server
	if !s.reserve("append_queue_full") {
		return
	}
	write := r.turn.Log()
	s.reserved(func() {
		wrote, err := write(s.ctx)
		switch {
		case err != nil:
			s.degraded.note("append", err)
		case wrote:
			s.degraded.wrote()
		}
	})
}

// remembering is how long the end of an answer waits at most for the log. What is late is written all the same.
const remembering = 250 * time.Millisecond

// remember marks what was relayed, so that the client can be recognised by it. It is done before the end of the answer
// is handed on: a client that has an answer may refer to it.
func (r *request) remember(tee dialect.Tee) {
	s := r.server
	defer r.seen.held(s.o.Now())
	var answer dialect.Answer
	if tee != nil {
		answer = tee.Answer()
	}
	if record := r.passed.compaction.record; record != "" {
		answer.Text = record // as which the client's item is read when it comes back
	}
	mark, settle := r.turn.Answered(answer, r.echo()), r.settling(r.lease.purse.used(http.StatusOK, r.last(answer)))
	done := make(chan struct{})
	s.inBackground(func() {
		defer close(done)
		settle()
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
