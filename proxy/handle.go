package proxy

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
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
	if err := screen(ctx); err != nil {
		return err
	}
	if isPreflight(&ctx.Request.Header) {
		r.answerPreflight(ctx)
		return nil
	}
	totals, err := r.readHeader(ctx)
	if err != nil || totals {
		return err
	}
	if r.params.tools && r.server.o.Tools != nil {
		return r.serveTools(ctx)
	}
	if r.params.plug != nil || r.params.reports {
		r.servePlug(ctx)
		return nil
	}
	if err := r.accept(ctx); err != nil {
		return err
	}
	r.orPassThrough(func() { err = r.recognise() })
	if err != nil {
		return err
	}
	l := &relay{r: r}
	if r.form.Turn().Recognised() && r.parsed.streams && r.server.o.Limits.KeepAlive > 0 {
		return l.serveStream(ctx)
	}
	l.resp, l.err = r.answer()
	return l.respond(ctx)
}

// accept refuses a request that has been here before, finds the tenant, applies its limits, reads the body and starts to
// watch the client.
func (r *request) accept(ctx *fasthttp.RequestCtx) error {
	return r.acceptFor(ctx, func(t *Tenant) *UpstreamConfig { return t.upstreamFor(r.params.provider(), r.params.keys) })
}

// acceptFor is accept with the upstream that a tenant's request goes to.
func (r *request) acceptFor(ctx *fasthttp.RequestCtx, upstreamOf func(*Tenant) *UpstreamConfig) error {
	marks, ok := r.server.o.Marks.passed(&ctx.Request.Header)
	if !ok {
		return r.refuseEarly(ctx, errLoop)
	}
	tenant := r.live.Tenants.find(r.params.key)
	if tenant == nil {
		return r.refuseStranger(ctx)
	}
	upstream := upstreamOf(tenant)
	if upstream == nil {
		return r.refuseEarly(ctx, errUnpaid)
	}
	r.accepted = r.claimed(tenant, upstream, marks)
	if r.run != nil {
		r.recorder.counted = r.run.Begin()
	}
	record := &r.recorder.record
	record.Tenant = r.tenant.Name
	record.Condenser = r.tenant.Condenser.Name()
	record.Upstream = r.upstream.BaseURL
	record.Asked.Method = r.params.method
	agent := r.params.header("User-Agent")
	record.Asked.Agent = agent[:min(len(agent), maxAgent)]
	record.Asked.Plan = r.upstream.APIKey == "" && agents.Subscribes(r.params.key, r.params.header)
	if e, ok := r.admit(); !ok {
		return r.refuseEarly(ctx, e)
	}
	if err := r.readBody(ctx); err != nil {
		return err
	}
	r.begin(ctx)
	return nil
}

// refuseStranger refuses a request whose key belongs to no tenant that is served.
func (r *request) refuseStranger(ctx *fasthttp.RequestCtx) error {
	if refused, is := refusedBy(r.live.Refused, r.params.key); is {
		r.recorder.record.Tenant = refused.Name
		return r.refuseEarly(ctx, errRefused)
	}
	return r.refuseEarly(ctx, errUnauthorized)
}

// orPassThrough runs a step that a request can do without: if the step panics, the body is forwarded unchanged.
func (r *request) orPassThrough(step func()) {
	if !r.server.o.guard(step) {
		r.pass()
	}
}

// recognise parses the body and looks its conversation up. The body is to be forwarded unchanged on other paths, if it cannot be parsed, and
// while the store is unavailable.
func (r *request) recognise() error {
	form, err := r.begun()
	switch {
	case err != nil:
		return err
	case form == nil:
		r.pass()
	default:
		r.adopt(form)
		r.noteRecognised()
	}
	return nil
}

// begun returns the form with which a recognised request begins, nil for one that is not recognised.
func (r *request) begun() (*engine.Form, error) {
	record := &r.recorder.record
	r.parsed.split = nil // of an earlier body
	if r.params.dialect == nil {
		return nil, nil
	}
	if r.params.ambiguous && record.Unread == "" {
		r.markUnread(unreadPath)
	}
	if record.Unread != "" {
		return nil, nil
	}
	if err := r.prepareCompaction(); err != nil {
		return nil, err
	}
	if err := r.parse(); err != nil || record.Unread != "" {
		return nil, err
	}
	r.parsed.model = r.live.Models(r.parsed.split.Model)
	r.parsed.streams = r.parsed.split.Stream || r.parsed.compaction.streamed
	record.Model = cmp.Or(r.parsed.model.Name, OtherModel)
	record.Asked.Model = askedModel(r.parsed.split.Model)
	return r.lookUp()
}

// parse splits the body into messages. A body that is not a conversation is marked as unread; that is not an error.
func (r *request) parse() error {
	split, err := r.params.dialect.Split(r.params.target(), r.body.bytes)
	if err == nil {
		split.Model = cmp.Or(split.Model, r.params.model)
		r.parsed.split = split
		return nil
	}
	refused, ok := errors.AsType[*dialect.Error](err)
	if ok && refused.Code != dialect.CodeUnsupported {
		e := badRequest(refused.Code, refused.Message)
		e.Param = refused.Param
		return e
	}
	r.markUnread(unreadUnsupported)
	if ok && refused.Param != "" && r.server.first("unread", r.params.dialect.Name()+refused.Message) {
		r.server.o.Log.Info("a request is forwarded as it is, and nothing of it is condensed. Logged once",
			zap.String("tenant", r.tenant.Name), zap.String("protocol", r.params.dialect.Name()), zap.String("why", refused.Message))
	}
	// Upstream may serve it all the same, as it does a stored prompt in the Responses API. Budgets in dollars need the model's price.
	var named struct{ Model string }
	_ = json.Unmarshal(r.body.bytes, &named)
	r.parsed.model = r.live.Models(cmp.Or(named.Model, r.params.model))
	return nil
}

// lookUp looks the conversation up. It returns nil if the store is unavailable.
func (r *request) lookUp() (*engine.Form, error) {
	form, err := r.server.o.Engine.Begin(r.ctx, r.input())
	if err == nil {
		r.server.degraded.readOK()
		return form, nil
	}
	if r.ctx.Err() != nil {
		return nil, upstreamError(r.ctx, err)
	}
	r.recorder.record.Times.Resolved = r.server.o.Now()
	r.recorder.record.Condensed.Did = "store_away"
	r.server.degraded.readFailed(err)
	return nil, nil
}

// exchange condenses a recognised request where that is due, sends it and returns upstream's answer, without calls of hidden tools.
func (r *request) exchange() (answer, error) {
	r.orPassThrough(r.limitToBudgets)
	r.orPassThrough(func() { r.withKeepAlive(r.condense) })
	if err := r.ctx.Err(); err != nil { // the client left during the condensation
		return answer{}, upstreamError(r.ctx, err)
	}
	resp, err := r.payAndSend()
	if err != nil {
		return answer{}, err
	}
	return r.answerHidden(resp)
}

// condense runs the condensation that is due, if any, and starts to write the log.
func (r *request) condense() {
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
func (r *request) payAndSend() (answer, error) {
	if err := r.pay(); err != nil {
		return answer{}, err
	}
	resp, err := r.send()
	if err == nil {
		resp, err = r.retryRefused(resp)
	}
	// A request that timed out, or whose client left, may have been served and billed. It is not refunded.
	if e, ok := errors.AsType[apiError](err); ok && e.Code == codeUnreachable {
		r.refund()
	}
	return resp, err
}

// forwarded returns the parts of the body that goes upstream.
func (r *request) forwarded() (parts [][]byte) {
	r.orPassThrough(func() { parts = r.form.Body() })
	if parts == nil { // it panicked
		parts = [][]byte{r.body.bytes}
	}
	return parts
}
