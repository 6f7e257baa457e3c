package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// request is one client request on its way. It outlives the handler: the answer is relayed and the log written after the handler has returned.
// Only one goroutine uses it at a time.
type request struct {
	accepted
	body     *body // decoded if the client encoded it
	parsed   parsed
	form     *engine.Form // what goes upstream
	early    func()       // starts the client's stream while a condensation takes long; nil: the answer is not streamed
	hidden   hidden
	gateway  credential // of the gateway that asked, even where it names the tenant of its client
	names    []string   // of a gateway's request: those by which the gateway may report the request's usage
	lease    lease
	recorder recorder
}

// arrival is what is known of a request before its header is read.
type arrival struct {
	server *Server
	live   *live  // the configuration that the request is served under, to its end
	origin string // of the web page that sends it; empty: not a web page
}

// accepted is what a request is once its header and body have been read. It begins with the request line and the header; claimed, received and
// watched each return the next value. It does not change afterwards.
type accepted struct {
	arrival
	params     params
	run        *Run // nil: of no run
	tenant     *Tenant
	upstream   *UpstreamConfig // the tenant's for the provider that the client means
	credential credential      // of the client, if only upstream authenticates clients
	marks      []string        // of the proxies that the request has passed
	header     http.Header     // of the client, without what must not go upstream
	ctx        context.Context // ends when the client leaves
	cancel     context.CancelCauseFunc
}

// claimed returns the request as that of a tenant, which goes to an upstream of the tenant's.
func (r accepted) claimed(by *Tenant, to *UpstreamConfig, marks []string) accepted {
	if r.run != nil && r.run.Observe && !by.Observe {
		observing := *by
		observing.Observe = true
		by = &observing
	}
	r.tenant, r.upstream, r.marks = by, to, marks
	if by.Anonymous {
		r.credential = credentialOf(by, to, r.params.credentials)
	}
	return r
}

// received returns the request with the header that goes upstream. It is read after the body. The client's credentials are left out if the
// operator's key replaces them.
func (r accepted) received(h *fasthttp.RequestHeader) accepted {
	r.header = outgoing(h)
	if r.upstream.APIKey != "" {
		maps.DeleteFunc(r.header, func(name string, _ []string) bool { return agents.IsCredentialHeader(name) })
		r.params.query = withoutKeys(r.params.query)
	}
	return r
}

// watched returns the request with its context, which ends when the client leaves.
func (r accepted) watched(record *Record) accepted {
	r.ctx, r.cancel = context.WithCancelCause(withMarks(limit.WithTrust(r.server.requests, r.trusted()), r.marks))
	if record.Asked.Plan {
		r.ctx = limit.WithPlan(r.ctx, r.params.key)
	}
	if tracer := r.server.o.Tracer; tracer != nil {
		r.ctx = tracer.Request(r.ctx, record, r.header)
	}
	return r
}

// parsed is what a body says. A changed body is parsed again.
type parsed struct {
	split      *dialect.Request // nil: it was not read
	model      ModelInfo
	streams    bool // the answer is streamed
	compaction compaction
}

// params is the request line and header of a client's request.
type params struct {
	method, query string
	key           string                   // finds the tenant, and is forwarded
	keys          []string                 // all keys that the client sent
	credentials   string                   // the same with their places
	header        func(name string) string // reads the client's header; valid until the answer is sent
	notices       bool                     // notices are sent as comments in a stream
	route
}

// lease is what a request holds until it is over.
type lease struct {
	admitted bool        // it counts as one of its tenant's concurrent requests
	unwatch  func()      // stops watching the client; nil: the watch has not begun
	timeout  *time.Timer // for the whole answer; nil: none
	relayed  bool        // the end of the relay releases the request, not the handler
	sent     *sentBody   // the body last sent upstream; nil: none
	payment  payment
}

// newRequest starts a request whose header has been read, and sends its id to the client.
func (s *Server) newRequest(ctx *fasthttp.RequestCtx, id string) *request {
	r := &request{accepted: accepted{arrival: arrival{s, s.live.Load(), string(ctx.Request.Header.Peek("Origin"))}}}
	r.recorder = recorder{o: &s.o, ctx: context.Background()}
	r.recorder.record.Asked.ID = id
	r.recorder.record.Times.Begun = s.o.Now()
	s.o.Observer.Begun()
	ctx.Response.Header.Set(requestIDHeader, id)
	return r
}

// readParams reads the request line and the header of a request with this path.
func (l *live) readParams(ctx *fasthttp.RequestCtx, path string) params {
	header := func(name string) string { return string(ctx.Request.Header.Peek(name)) }
	method := string(ctx.Method())
	query := string(ctx.URI().QueryString())
	keys, all := engine.Credential(header, query)
	p := params{
		method: method, query: query, keys: keys, credentials: all, header: header,
		notices: strings.EqualFold(header("X-Dewpoint-Notify"), "comment"),
		route:   l.route(method, path),
	}
	if len(keys) > 0 {
		p.key = keys[0]
	}
	return p
}

// target returns the path below the base URL, with the query if there is one.
func (p *params) target() string {
	if p.query == "" {
		return p.path
	}
	return p.path + "?" + p.query
}

// provider returns the provider that the client means.
func (p *params) provider() provider.Name {
	asked := provider.Request{Gemini: p.gemini, Header: p.header}
	if p.clientDialect != nil {
		asked.Protocol = p.clientDialect.Name()
	}
	return provider.Of(asked)
}

// input returns what the engine needs to know of the request.
func (r *request) input() engine.Input {
	model := r.parsed.model.Model
	model.Alternates = model.Alternates || r.upstream.AlternateRoles
	c, upstream := &r.parsed.compaction, r.endpoint()
	upstream.Way.Limit = r.parsed.split.LimitedBy
	return engine.Input{
		Settings:   r.live.settings,
		Tenant:     &r.tenant.Tenant,
		Upstream:   upstream,
		Client:     engine.Client{Credential: r.params.credentials, Keys: r.params.keys, Header: r.params.header, Request: r.recorder.record.Asked.ID},
		Wish:       r.wish(),
		Dialect:    r.params.dialect,
		Split:      r.parsed.split,
		Model:      model,
		Body:       r.body,
		Compaction: engine.Compaction{Compacts: c.wanted, Asks: c.ours, Limit: c.Limit, Told: c.Instructions},
		Condensing: r.recorder.condensing,
		Spent:      r.spent(),
		Budgets:    r.reporter().budgets,
		Late:       r.reporter().attempts,
	}
}

// spent returns what is called with each call of a summariser.
func (r *request) spent() func(session.SessionID, limit.Call) {
	charge, run, observer, models := r.reporter().chargeSummary, r.run, r.server.o.Observer, r.live.Models
	own := OwnCall{Tenant: r.tenant.Name, Agent: r.recorder.record.Asked.Agent}
	if h := r.tenant.Holdout; h.Share > 0 && h.Variant == "" {
		own.Arm = engine.ArmCondensed // for sessions that are held out there are no calls; with a variant it is not known here
	}
	return func(id session.SessionID, c limit.Call) {
		own := own
		own.Call, own.Session, own.Model = c, id, cmp.Or(models(c.Model).Name, OtherModel)
		observer.Called(own)
		if run != nil {
			run.Spent(c)
		}
		charge(id, c)
	}
}

func (r *accepted) wish() engine.Wish {
	return engine.Wish(strings.ToLower(r.params.header("X-Dewpoint-Condense")))
}

// endpoint returns the request's upstream and how it is called: key, path, query and headers.
func (r *accepted) endpoint() condense.Endpoint {
	to := condense.Endpoint{BaseURL: r.upstream.BaseURL.String(), APIKey: cmp.Or(r.upstream.APIKey, r.params.key)}
	to.Way = condense.Way{API: r.params.dialect.Name(), Path: cmp.Or(r.params.deployment, r.params.named)}
	to.Way.KeyHeader, _ = r.keyHeader()
	to.Way.Headers, to.Way.Route = sharedHeaders(r.header)
	if query, err := url.ParseQuery(r.params.query); err == nil && query.Has(apiVersion) {
		to.Way.Query = url.Values{apiVersion: query[apiVersion]}.Encode()
	}
	return to
}

// apiVersion is the query parameter that Azure's API requires in each call.
const apiVersion = "api-version"

// azureKey is the header in which Azure's servers, and few others, expect the key.
const azureKey = "Api-Key"

// keyHeader returns the header that carries the configured key: Azure's own for its servers, otherwise the protocol's. If no key is
// configured, it is the header in which the client sent its own.
func (r *accepted) keyHeader() (name, value string) {
	key, d := r.upstream.APIKey, r.params.clientDialect
	switch {
	case key == "":
		for _, name := range [...]string{"Authorization", azureKey, "X-Api-Key", "X-Goog-Api-Key"} {
			if value := r.header.Get(name); value != "" {
				return name, value
			}
		}
		if r.params.named != "" { // the client's key is in the query
			return d.Key(r.params.key)
		}
	case r.params.deployment != "" || agents.Azure(r.upstream.BaseURL):
		return azureKey, key
	case d != nil:
		return d.Key(key)
	}
	return "Authorization", "Bearer " + key
}

// sharedHeaders returns headers of a request, one per line: those that our own calls to its upstream copy, and those that route a call to the
// cache which holds the request's prompt.
func sharedHeaders(h http.Header) (copied, routing string) {
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

// begin starts to watch the client of an accepted request.
func (r *request) begin(ctx *fasthttp.RequestCtx) {
	record := &r.recorder.record
	record.Times.Read = r.server.o.Now()
	if r.params.dialect != nil {
		record.Dialect = r.params.dialect.Name()
		record.Asked.Path = "/v1" + r.params.served
	}
	r.accepted = r.watched(record)
	r.recorder.ctx = r.ctx
	r.lease.unwatch = listen.WatchClient(ctx.Conn(), func() { r.cancel(errClientGone) })
}

// release gives back what the request holds, once its answer has been relayed or never will be.
func (r *request) release() {
	if r.lease.timeout != nil {
		r.lease.timeout.Stop()
	}
	r.settle(0, dialect.Answer{})((*Server).inBackground) // if no answer settled it
	if r.lease.unwatch != nil {
		r.cancel(nil)
		r.lease.unwatch()
	}
	r.releaseBody()
	r.hold(0)
	r.leave()
}

// minDropped is the size of the smallest body whose references are dropped, in bytes. Copying a turn without its text costs more than a
// smaller body holds.
const minDropped = 64 << 10

// dropText releases the body and, if it is large, everything that refers to it, so that a slow reader of the answer keeps none of it in
// memory.
func (r *request) dropText() {
	if r.body != nil && len(r.body.bytes) >= minDropped {
		r.adopt(r.form.WithoutText())
		r.parsed.split = nil
	}
	r.lease.sent.drop()
	r.releaseBody()
}

// adopt makes a form the one that goes upstream.
func (r *request) adopt(f *engine.Form) {
	r.form = f
	if f.Turn().Recognised() {
		r.recorder.form = f
	}
}

// pass makes the request go on without the engine.
func (r *request) pass() {
	var text []byte
	if r.body != nil {
		text = r.body.bytes
	}
	e := r.server.o.Engine
	if !r.server.o.guard(func() { r.adopt(e.Pass(r.params.dialect, r.parsed.split, text)) }) {
		r.adopt(e.Pass(nil, nil, text)) // the messages are what it cannot read
	}
}

// releaseBody gives back the request's share in its body, once.
func (r *request) releaseBody() {
	if r.body != nil {
		r.body.Release()
		r.body = nil
	}
}

const (
	clientIDHeader  = "X-Request-Id"          // in which clients and gateways send an id
	requestIDHeader = "X-Dewpoint-Request-Id" // in which the client gets it back
)

// plainID matches an id that is taken from a client.
var plainID = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)

// requestID returns the id by which a request is found in the log: the client's own if it is short and plain, otherwise a random one.
func requestID(given []byte) string {
	if !plainID.Match(given) {
		return rand.Text()
	}
	return string(given)
}
