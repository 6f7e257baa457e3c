package proxy

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// handle is fasthttp's handler. A request is accepted, recognised, condensed and sent; sent again if upstream refuses it for a reason that
// can be cured; and its answer is relayed. The relay goes on after handle has returned.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := s.newRequest(ctx, requestID(ctx.Request.Header.Peek(clientIDHeader)))
	defer func() {
		if !r.lease.relayed {
			r.release() // not before refuse, which may still count the body's tokens
		}
		if s.draining.Load() {
			ctx.SetConnectionClose()
		}
	}()
	ok := s.o.guard(func() {
		if err := r.serve(ctx); err != nil {
			r.refuse(ctx, err)
		}
	})
	if !ok {
		e := errInternal
		e.Close = true
		r.refuse(ctx, e)
	}
}

// serve takes a request from its header to the start of the relay. The error is the client's answer.
func (r *request) serve(ctx *fasthttp.RequestCtx) error {
	if err := r.accept(ctx); err != nil {
		return err
	}
	var err error
	r.orPassThrough(func() { err = r.recognise() })
	if err != nil {
		return err
	}
	l := &relay{r: r}
	if r.form != nil && r.params.streams && r.server.o.Limits.KeepAlive > 0 {
		return l.serveStream(ctx)
	}
	l.resp, l.err = r.answer() //nolint:bodyclose // relay.Close closes it
	return l.respond(ctx)
}

// accept checks the header, refuses a request that has been here before, finds the tenant, applies its limits, reads the body and starts to
// watch the client.
func (r *request) accept(ctx *fasthttp.RequestCtx) error {
	if err := screen(ctx); err != nil {
		return err
	}
	r.live = r.server.live.Load()
	r.params = r.live.readParams(ctx)
	marks, ok := r.server.o.Marks.passed(&ctx.Request.Header)
	if !ok {
		return r.refuseEarly(ctx, errLoop)
	}
	r.marks = marks
	r.tenant = r.live.Tenants.find(r.params.key)
	if r.tenant == nil {
		return r.refuseEarly(ctx, errUnauthorized)
	}
	if r.tenant.Anonymous {
		r.params.credential = credentialOf(r.tenant, r.params.keys)
	}
	record := &r.obs.record
	record.Tenant = r.tenant.Name
	record.Condenser = r.tenant.Condenser.Name()
	record.Upstream = r.tenant.Upstream.BaseURL
	record.Asked.Method = r.params.method
	if e, ok := r.admit(); !ok {
		return r.refuseEarly(ctx, e)
	}
	if err := r.readBody(ctx); err != nil {
		return err
	}
	r.begin(ctx)
	return nil
}

// orPassThrough runs a step that a request can do without: if the step panics, the body is forwarded unchanged.
func (r *request) orPassThrough(step func()) {
	if !r.server.o.guard(step) {
		r.form = nil
	}
}

// recognise parses the body and begins the request's turn. It leaves r.form nil if the body is to be forwarded unchanged: on other paths,
// if the body cannot be parsed, and while the store is unavailable.
func (r *request) recognise() error {
	r.form = nil // of an earlier attempt, whose body has been replaced
	if r.params.dialect == nil {
		return nil
	}
	r.header.Set("Accept-Encoding", "identity") // the tee reads the answer
	record := &r.obs.record
	if r.params.ambiguous && record.Unread == "" {
		r.markUnread(unreadPath)
	}
	if record.Unread != "" {
		return nil
	}
	if err := r.prepareCompaction(); err != nil {
		return err
	}
	if err := r.parse(); err != nil || record.Unread != "" {
		return err
	}
	r.model = r.live.Models(r.parsed.split.Model)
	r.params.streams = r.parsed.split.Stream || r.parsed.compaction.streamed
	record.Model = cmp.Or(r.model.Name, OtherModel)
	return r.beginTurn()
}

// parse splits the body into messages. A body that is not a conversation is marked as unread; that is not an error.
func (r *request) parse() error {
	split, err := r.params.dialect.Split(r.body.bytes)
	if err == nil {
		split.Model = cmp.Or(split.Model, r.params.model)
		r.parsed.split = split
		return nil
	}
	if refused, ok := errors.AsType[*dialect.Error](err); ok && refused.Code != dialect.CodeUnsupported {
		e := badRequest(refused.Code, refused.Message)
		e.Param = refused.Param
		return e
	}
	r.markUnread(unreadUnsupported)
	// Upstream may serve it all the same, as it does a stored prompt in the Responses API. Budgets in dollars need the model's price.
	var named struct{ Model string }
	_ = json.Unmarshal(r.body.bytes, &named)
	r.model = r.live.Models(cmp.Or(named.Model, r.params.model))
	return nil
}

// beginTurn looks the conversation up. If the store is unavailable, the request is forwarded without a turn.
func (r *request) beginTurn() error {
	form, err := r.server.o.Engine.Begin(r.ctx, r.input())
	if err == nil {
		r.adopt(form)
		r.server.degraded.readOK()
		r.noteRecognised()
		return nil
	}
	if r.ctx.Err() != nil {
		return upstreamError(r.ctx, err)
	}
	r.obs.record.Times.Resolved = r.server.o.Now()
	r.obs.record.Condensed.Did = "store_away"
	r.server.degraded.readFailed(err)
	return nil
}

// exchange condenses a recognised request where that is due, sends it and returns upstream's answer, without calls of hidden tools.
func (r *request) exchange() (*http.Response, error) {
	r.orPassThrough(r.limitToBudgets)
	r.orPassThrough(func() { r.withKeepAlive(r.condense) })
	if err := r.ctx.Err(); err != nil { // the client left during the condensation
		return nil, upstreamError(r.ctx, err)
	}
	resp, err := r.payAndSend()
	if err != nil {
		return nil, err
	}
	return r.answerHidden(resp)
}

// condense runs the condensation that is due, if any, and starts to write the log.
func (r *request) condense() {
	if r.form == nil {
		return
	}
	if r.params.counts {
		r.adopt(r.form.Shape())
		return
	}
	form, report := r.form.Condense(r.ctx)
	r.adopt(form)
	r.noteReport(report)
	r.startLog()
}

// payAndSend charges the tenant's limits and budgets for the request and sends it, if need be more than once.
func (r *request) payAndSend() (*http.Response, error) {
	if err := r.pay(); err != nil {
		return nil, err
	}
	resp, err := r.send(r.forwarded())
	if err == nil && (r.form != nil || r.carriesSealed()) {
		resp, err = r.retryRefused(resp)
	}
	// A request that timed out, or whose client left, may have been served and billed. It is not refunded.
	if e, ok := errors.AsType[apiError](err); ok && e.Code == codeUnreachable {
		r.refund()
	}
	return resp, err
}

// forwarded returns the parts of the body that goes upstream.
func (r *request) forwarded() [][]byte {
	parts := [][]byte{r.body.bytes}
	switch {
	case r.parsed.stripped != nil:
		parts = r.parsed.stripped
	case r.form != nil:
		r.orPassThrough(func() { parts = r.form.Body() })
	}
	return parts
}
