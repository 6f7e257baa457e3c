package proxy

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// request is one client request on its way. It outlives the handler: the answer is relayed, and the log written, after that
// has returned.
type request struct {
	server  *Server
	live    *live // the configuration that it is served under
	tenant  *Tenant
	asked   asked
	header  http.Header // that goes upstream
	body    *body       // decoded, where the client encoded it
	model   ModelInfo
	early   chan struct{} // has a value once the client has waited long for a condensation; nil: it does not matter
	passed  passed
	turn    *engine.Turn    // nil: the body goes upstream as it came
	ctx     context.Context // ends when the client leaves
	cancel  context.CancelCauseFunc
	lease   lease
	seen    observation
	charged int // tokens taken from the tenant's minute
}

// passed is a body that was read, whether or not its conversation is known.
type passed struct {
	split *dialect.Request // nil: it was not read
	bared [][]byte         // it without its sealed reasoning, where upstream refused it as it came; nil: it did not
	added string           // the header that what was forwarded last needed; empty: none
	given []string         // that header as the client sent it

	compaction compaction

	strainer dialect.Strainer // takes hidden calls out of the answers; nil: none is offered
	tee      dialect.Tee      // reads the last of them as upstream gave it
	again    int              // how many times upstream was asked again after such calls
	replied  bool             // those of the last answer were met
}

// asked is what a client asked for.
type asked struct {
	method, query string
	key           string                   // finds the tenant, and goes upstream
	keys          string                   // all that the client sent
	credential    credential               // their hash, where only upstream authenticates clients
	header        func(name string) string // reads the client's header; until the handler returns
	streams       bool                     // the answer is to be streamed
	comment       bool                     // and notices are wanted as comments of the stream
	route
}

// lease is what a request holds until it is over.
type lease struct {
	watch    *listen.Watch
	limit    *time.Timer // of the whole answer, nil: none
	over     sync.Once
	relayed  bool // its answer is: the relay's end releases it
	bodyless bool // the body was given back before
	purse    purse
}

func (l *live) readAsked(ctx *fasthttp.RequestCtx) asked {
	header := func(name string) string { return string(ctx.Request.Header.Peek(name)) }
	method := string(ctx.Method())
	query := string(ctx.URI().QueryString())
	key, all := engine.Credential(header, query)
	return asked{
		method: method, query: query, key: key, keys: all, header: header,
		comment: strings.EqualFold(header("X-Dewpoint-Notify"), "comment"), route: l.route(method, string(ctx.URI().PathOriginal())),
	}
}

// input is what the engine is told of the request.
func (r *request) input(split *dialect.Request) engine.Input {
	r.model.Alternates = r.model.Alternates || r.tenant.Upstream.AlternateRoles
	c := &r.passed.compaction
	return engine.Input{
		Settings: r.live.settings, Tenant: &r.tenant.Tenant, Upstream: r.endpoint(),
		Client: engine.Client{Credential: r.asked.keys, Header: r.asked.header, Request: r.seen.record.Asked.ID},
		Wish:   engine.Wish(strings.ToLower(r.asked.header("X-Dewpoint-Condense"))), Dialect: r.asked.dialect, Split: split,
		Model: r.model.Model, Body: r.body, Compaction: engine.Compaction{Compacts: c.wanted, Asks: c.ours, Limit: c.limit, Told: c.more},
		Condensing: r.seen.condensing, Spent: r.noted().spend, Late: r.late(),
	}
}

// endpoint is where the request goes, with which key, and how.
func (r *request) endpoint() condense.Endpoint {
	to := condense.Endpoint{BaseURL: r.tenant.Upstream.BaseURL.String(), APIKey: r.tenant.Upstream.APIKey}
	to.Way = condense.Way{API: r.asked.dialect.Name(), Path: r.asked.before, KeyHeader: r.keyHeader()}
	to.Way.Headers, to.Way.Route = shared(r.header)
	if query, err := url.ParseQuery(r.asked.query); err == nil && query.Has(apiVersion) {
		to.Way.Query = url.Values{apiVersion: query[apiVersion]}.Encode()
	}
	if to.APIKey == "" {
		to.APIKey = r.asked.key
	}
	return to
}

// apiVersion is the part of a query that Azure's API wants with each call.
const apiVersion = "api-version"

// azureKey is the header that Azure's servers, and few others, have a key in.
const azureKey = "Api-Key"

// anthropicKey is the header that Anthropic's API has a key in.
const anthropicKey = "X-Api-Key"

// keyHeader is the header that our own calls have the upstream's key in: the configured one's, or as the client sends its own.
func (r *request) keyHeader() string {
	azure := r.asked.before != "" || agents.Azure(r.tenant.Upstream.BaseURL)
	configured := r.tenant.Upstream.APIKey != ""
	for _, name := range [...]string{"Authorization", azureKey, anthropicKey} {
		if !configured && r.header.Get(name) != "" {
			return name
		}
	}
	switch d := r.asked.speaks; {
	case configured && azure:
		return azureKey
	case configured && d != nil:
		name, _ := d.Key("")
		return name
	}
	return "Authorization"
}

// shared lists the headers of a request that our own calls to its upstream have as well, a line each, and those that lead to the cache which
// has its prompt.
func shared(h http.Header) (all, route string) {
	var lines, routes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			switch {
			case agents.Shared(name):
				lines.WriteString(name + ":" + value + "\n")
			case agents.Routes(name):
				routes.WriteString(name + ":" + value + "\n")
			}
		}
	}
	return lines.String(), routes.String()
}

// outbound is the request as it goes upstream, with a body of parts.
func (r *request) outbound(url *url.URL, parts [][]byte) *http.Request {
	parts, held := r.wire(parts)
	out := outbound{Method: r.asked.method, URL: url, Header: r.header, Parts: parts, Held: held}
	return out.request(r.ctx)
}

// dropBody gives back the request's share in its body, once.
func (r *request) dropBody() {
	if r.lease.bodyless {
		return
	}
	r.lease.bodyless = true
	r.body.Release()
}

// begin starts the life of a request that was accepted, which ends with its client.
func (r *request) begin(ctx *fasthttp.RequestCtx) {
	ended, cancel := context.WithCancelCause(limit.WithTrust(r.server.requests, r.trusted()))
	r.ctx, r.cancel = r.seen.bodyRead(ended, r), cancel
	r.lease.watch = listen.WatchClient(ctx.Conn(), func() { r.cancel(errClientGone) })
}

// abandon releases a request that was accepted and has no answer to be relayed.
func (r *request) abandon() {
	if r.lease.watch != nil && !r.lease.relayed {
		r.release()
	}
}

// release gives back what a request holds. Its answer has been relayed, or will never be. A second call does nothing.
func (r *request) release() {
	r.lease.over.Do(func() {
		if r.lease.limit != nil {
			r.lease.limit.Stop()
		}
		r.finish(session.Usage{Input: r.lease.purse.prompt}) // if it was not answered
		r.cancel(nil)
		r.lease.watch.Stop()
		r.dropBody()
		r.tenant.gate.leave()
	})
}
