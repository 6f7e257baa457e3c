package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// servePlug answers a gateway. It never refuses: whatever goes wrong, the history is to go upstream unchanged, and the answer says why.
func (r *request) servePlug(ctx *fasthttp.RequestCtx) {
	var ask plug.Ask
	done, answer := plug.Done{Why: codeInternal}, plug.WriteUsage(codeInternal)
	r.server.o.guard(func() {
		err := r.acceptPlug(ctx)
		switch {
		case err != nil:
			done.Why = whyOf(err)
			answer = plug.WriteUsage(done.Why)
		case r.params.reports:
			done.Why = r.takeReport()
			answer = plug.WriteUsage(done.Why)
		default:
			ask, done = r.plugged()
		}
	})
	if wire := r.params.plug; wire != nil {
		if done.Why != "" && r.server.first("plug", wire.Name()+" "+done.Why) {
			r.server.o.Log.Warn("a gateway's request was answered with its history unchanged. Said once for each reason",
				zap.String("plug", wire.Name()), zap.String("why", done.Why))
		}
		answer = wire.Write(ask, done)
	}
	if r.form != nil && r.form.Turn().Recognised() {
		r.server.o.guard(func() { r.describe(&ctx.Response.Header) })
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(answer)
	r.recorder.end(http.StatusOK, done.Why)
	r.server.o.guard(r.finishPlug)
}

// whyOf returns why a request is not served, in a word.
func whyOf(err error) string {
	if e, ok := errors.AsType[apiError](err); ok {
		return e.Code
	}
	if errors.Is(err, errClientGone) {
		return CodeClientGone
	}
	return err.Error()
}

// acceptPlug accepts a gateway's request. Nothing goes upstream, so the gateway needs no key that is valid there, and what it sends to be known
// here is kept from there.
func (r *request) acceptPlug(ctx *fasthttp.RequestCtx) error {
	record := &r.recorder.record
	if record.Plug = usageReport; r.params.plug != nil {
		record.Plug = r.params.plug.Name()
	}
	if err := r.acceptFor(ctx, func(t *Tenant) *UpstreamConfig { return &t.Upstream }); err != nil {
		return closeAfter(ctx, err)
	}
	r.gateway = credentialOf(r.tenant, r.upstream, strings.Join(r.params.keys, "\n"))
	r.accepted = r.keyless()
	return nil
}

// keyless returns a gateway's request without what must not reach a model's server.
func (r accepted) keyless() accepted {
	r.params.key, r.header = "", http.Header{}
	r.ctx = limit.WithoutKey(r.ctx)
	return r
}

// asked returns the request as that of the gateway's client, for what the gateway asks.
func (r accepted) asked(ask *plug.Ask) accepted {
	if ask.User != "" {
		r.params.credentials += fmt.Sprintf("gateway's client %d %s\n", len(ask.User), ask.User)
	}
	r.params.path, r.params.dialect = ask.Path, r.live.Dialects[ask.Path]
	r.params.header = headerOf(ask, r.params.header)
	r.tenant = tenantFor(r.tenant, ask, r.patience())
	r.params.query = ""
	return r
}

// patience returns how long the gateway waits for a condensation: as the parameter wait says, or as its wire does.
func (r accepted) patience() time.Duration {
	values, err := url.ParseQuery(r.params.query)
	if err != nil {
		return r.params.plug.Patience()
	}
	wait, err := time.ParseDuration(values.Get("wait"))
	if err != nil || wait <= 0 {
		return r.params.plug.Patience()
	}
	return wait
}

// usageReport is what Record.Plug is for a report of a request's usage.
const usageReport = "usage"

// closeAfter closes the connection after the answer if the error says so, since the rest of a body may still come.
func closeAfter(ctx *fasthttp.RequestCtx, err error) error {
	if e, ok := errors.AsType[apiError](err); ok && e.Close || errors.Is(err, errClientGone) {
		ctx.SetConnectionClose()
	}
	return err
}

// plugged runs the engine on what a gateway asks.
func (r *request) plugged() (plug.Ask, plug.Done) {
	ask, err := r.params.plug.Read(r.body.bytes)
	ask.List = bytes.Clone(ask.List) // the body is released before the answer is written
	if err == nil {
		err = r.readPlug(&ask)
	}
	if err != nil {
		return ask, plug.Done{Why: whyOf(err)}
	}
	r.orPassThrough(r.condense)
	return ask, r.plugDone(&ask)
}

// Reasons why a gateway's history is not looked at.
var (
	errNotServed    = errors.New("protocol_not_served")
	errKeptUpstream = errors.New("kept_upstream") // only a part of the history is in the request
	errStoreAway    = errors.New("store_unavailable")
)

// readPlug makes what a gateway asks the request to work on, and looks its conversation up.
func (r *request) readPlug(ask *plug.Ask) error {
	r.names = []string{r.recorder.record.Asked.ID, ask.ID, ask.Session}
	if err := r.actFor(ask.KeyHash); err != nil {
		return err
	}
	if r.accepted = r.accepted.asked(ask); r.params.dialect == nil {
		return errNotServed
	}
	r.recorder.record.Dialect = r.params.dialect.Name()
	if len(ask.Body) != len(r.body.bytes) {
		r.body = r.body.rephrased(ask.Body)
	}
	if err := r.parse(); err != nil {
		return err
	}
	split := r.parsed.split
	switch {
	case split == nil:
		return plug.ErrNothing
	case split.Kept != session.Kept{}:
		return errKeptUpstream
	}
	r.parsed.model = r.live.Models(split.Model)
	r.recorder.record.Model = cmp.Or(r.parsed.model.Name, OtherModel)
	r.recorder.record.Asked.Model = askedModel(split.Model)
	form, err := r.lookUp()
	switch {
	case err != nil:
		return err
	case form == nil:
		return errStoreAway
	}
	if ask.Limit > 0 {
		form = form.LimitTo(ask.Limit)
	}
	r.adopt(form)
	r.noteRecognised()
	return nil
}

// actFor makes the request one of the tenant that has the gateway's client's key, if the gateway may name it.
func (r *request) actFor(keyHash string) error {
	other := r.live.Tenants.named(keyHash)
	if !r.tenant.Gateway || other == nil {
		return nil
	}
	r.leave()
	r.accepted = r.claimed(other, &other.Upstream, r.marks)
	r.recorder.record.Tenant, r.recorder.record.Condenser = r.tenant.Name, r.tenant.Condenser.Name()
	if e, ok := r.admit(); !ok {
		return e
	}
	return nil
}

// headerOf reads the headers of a gateway's client where the gateway shows them, and otherwise the gateway's own.
func headerOf(ask *plug.Ask, own func(string) string) func(string) string {
	return func(name string) string {
		if v := ask.Header[strings.ToLower(name)]; v != "" {
			return v
		}
		if ask.Session != "" && strings.EqualFold(name, "X-Dewpoint-Session") {
			return ask.Session
		}
		return own(name)
	}
}

// tenantFor returns the tenant with what a gateway's request needs: its deadline, and condensers that only shorten results if it asks for that.
func tenantFor(t *Tenant, ask *plug.Ask, patience time.Duration) *Tenant {
	own := *t // its gate is shared
	if patience > 0 {
		own.Deadline = min(cmp.Or(t.Deadline, engine.DefaultDeadline), patience)
	}
	if ask.Trims {
		own.Condenser = condense.Pipeline{Stages: []condense.Condenser{condense.LosslessTrim{}, condense.ToolOutputTrim{}}}
		own.Never, own.Ahead = true, false
	}
	return &own
}

// plugDone returns what came of a gateway's request.
func (r *request) plugDone(ask *plug.Ask) plug.Done {
	if !r.form.Turn().Recognised() {
		return plug.Done{Why: codeInternal}
	}
	form, thread := r.form, &r.form.Place().Thread
	done := plug.Done{
		Request: r.recorder.record.Asked.ID, Session: string(thread.Session), Thread: string(thread.ID),
		Before: form.Adjust(form.Turn().Before().Tokens), After: form.Adjust(form.Sent().Tokens),
	}
	parts := r.forwarded()
	if len(parts) == 1 {
		done.After = done.Before
		return done
	}
	body := bytes.Join(parts, nil)
	if ask.Trims && !r.sameRows(body) {
		return plug.Done{Why: "rows_differ"}
	}
	done.Body, done.Applied = body, applied(form.Condensed())
	return done
}

// sameRows reports whether a body has as many messages as the request's, so that a gateway can put each in its place.
func (r *request) sameRows(body []byte) bool {
	split, err := r.params.dialect.Split(r.params.path, body)
	return err == nil && len(split.Messages) == len(r.parsed.split.Messages)
}

// applied names what a history went through for a request: what was made for it, or that earlier condensations apply.
func applied(made []session.Condensation) (names []string) {
	for i := range made {
		if name := "dewpoint:" + string(made[i].Made()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		names = []string{"dewpoint:view"}
	}
	return names
}

// finishPlug notes that the history was answered, since the gateway sends it on and its answer is not seen, and keeps what a later report of its
// usage is about. The first request of a conversation waits for its log, or the next one could come before it and begin another.
func (r *request) finishPlug() {
	if r.form == nil || !r.form.Turn().Recognised() {
		return
	}
	r.addSavings()
	r.addToHoldout(r.ownCount())
	r.keepForReport()
	if !r.form.Logs() {
		return
	}
	mark, s := r.form.Answered(dialect.Answer{}, nil), r.server
	done := make(chan struct{})
	s.inBackground(func() {
		defer close(done)
		if err := mark(s.ctx); err != nil {
			s.degraded.writeFailed("mark answer", err)
		}
	})
	if r.form.Place().Begins {
		waitFor(done, maxHold)
	}
}

// ownCount returns what the request's prompt uses by our own count, as if its known part was read from a cache, unless it was condensed.
func (r *request) ownCount() *session.Usage {
	t := r.recorder.record.Turn
	u := &session.Usage{Input: t.After.Tokens}
	if len(t.Condensed) == 0 {
		u.Cached = min(t.Known, u.Input)
	}
	return u
}
