package proxy

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
)

// request is one client request on its way. It outlives the handler: the answer is relayed, and the log written, after that
// has returned.
type request struct {
	server *Server
	live   *live // the configuration that it is served under
	tenant *Tenant
	asked  asked
	header http.Header // that goes upstream
	body   *body       // decoded, where the client encoded it
	model  ModelInfo
	early  func() // is called once the client has waited long for a condensation; nil: it does not matter
	passed passed
	turn   *engine.Turn    // nil: the body goes upstream as it came
	ctx    context.Context // ends when the client leaves
	cancel context.CancelCauseFunc
	lease  lease
	seen   observation
}

// passed is a body that was read, whether or not its conversation is known.
type passed struct {
	split *dialect.Request // nil: it was not read
	bared [][]byte         // it without its sealed reasoning, where upstream refused it as it came; nil: it did not

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
	admitted bool        // it is one of its tenant's requests at the same time
	unwatch  func()      // ends the watch over its client; nil: that has not begun
	limit    *time.Timer // of the whole answer, nil: none
	relayed  bool        // its answer is: the relay's end releases it
	purse    purse
}

// begun is a request whose header has come. Its client is told its id.
func (s *Server) begun(ctx *fasthttp.RequestCtx, id string) *request {
	r := &request{server: s}
	r.seen.o, r.seen.ctx, r.seen.record.Asked.ID, r.seen.record.Times.Begun = &s.o, context.Background(), id, s.o.Now()
	s.o.Observer.Begun()
	ctx.Response.Header.Set(toldID, id)
	return r
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
		Model: r.model.Model, Body: r.body, Compaction: engine.Compaction{Compacts: c.wanted, Asks: c.ours, Limit: c.Limit, Told: c.Instructions},
		Condensing: r.seen.condensing, Spent: r.noted().spend, Late: r.noted().attempts,
	}
}

// endpoint is where the request goes, with which key, and how.
func (r *request) endpoint() condense.Endpoint {
	to := condense.Endpoint{BaseURL: r.tenant.Upstream.BaseURL.String(), APIKey: r.tenant.Upstream.APIKey}
	to.Way = condense.Way{API: r.asked.dialect.Name(), Path: r.asked.before}
	to.Way.KeyHeader, _ = r.keyHeader()
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

// keyHeader is the header that upstream has the configured key in: Azure's servers have one of their own, others that of the protocol.
// Where none is configured, it is the one that the client has its own key in.
func (r *request) keyHeader() (name, value string) {
	key, d := r.tenant.Upstream.APIKey, r.asked.speaks
	switch {
	case key == "":
		for _, name := range [...]string{"Authorization", azureKey, "X-Api-Key"} {
			if value := r.header.Get(name); value != "" {
				return name, value
			}
		}
	case r.asked.before != "" || agents.Azure(r.tenant.Upstream.BaseURL):
		return azureKey, key
	case d != nil:
		return d.Key(key)
	}
	return "Authorization", "Bearer " + key
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

// begin starts the life of a request that was accepted, which ends with its client.
func (r *request) begin(ctx *fasthttp.RequestCtx) {
	record := &r.seen.record
	record.Times.Read = r.server.o.Now()
	if r.asked.dialect != nil {
		record.Dialect, record.Asked.Path = r.asked.dialect.Name(), "/v1"+r.asked.served
	}
	r.ctx, r.cancel = context.WithCancelCause(limit.WithTrust(r.server.requests, r.trusted()))
	if tracer := r.server.o.Tracer; tracer != nil {
		r.ctx = tracer.Request(r.ctx, record, r.header)
	}
	r.seen.ctx = r.ctx
	r.lease.unwatch = listen.WatchClient(ctx.Conn(), func() { r.cancel(errClientGone) })
}

// abandon releases a request that has no answer to be relayed.
func (r *request) abandon() {
	if !r.lease.relayed {
		r.release()
	}
}

// release gives back what a request holds. Its answer has been relayed, or will never be.
func (r *request) release() {
	if r.lease.limit != nil {
		r.lease.limit.Stop()
	}
	r.settleLater(0, dialect.Answer{}) // if it was not answered
	if r.lease.unwatch != nil {
		r.cancel(nil)
		r.lease.unwatch()
	}
	r.dropBody()
	r.leave()
}

// dropBody gives back the request's share in its body, once.
func (r *request) dropBody() {
	if r.body != nil {
		r.body.Release()
		r.body = nil
	}
}

// The headers of a request's id: the one that clients and gateways give it, and the one that it is told back in.
const (
	givenID = "X-Request-Id"
	toldID  = "X-Dewpoint-Request-Id"
)

// longestID is how long an id may be that a client gives, in bytes.
const longestID = 64

// requestID is the id by which a request is found in the log: the client's own if it is short and plain, else a new one.
func requestID(given []byte) string {
	if len(given) == 0 || len(given) > longestID {
		return rand.Text()
	}
	for _, c := range given {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return rand.Text()
		}
	}
	return string(given)
}
