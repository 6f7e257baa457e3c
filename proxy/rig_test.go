package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// patience bounds a test that would otherwise hang.
const patience = time.Minute

// keyMark begins every credential in these tests, so that none is in a log or a metric unnoticed.
const keyMark = "sk-test-"

// setup is how a rig differs from the default: a fake upstream, an embedded store, one anonymous tenant, no condenser.
type setup struct {
	upstream  fakeupstream.Options
	base      string            // of another upstream
	transport http.RoundTripper // another way upstream
	limits    func(*proxy.Limits)
	turns     func(*engine.Limits)
	condenser condense.Condenser
	dialect   dialect.Dialect // instead of chat
	plugs     map[string]plug.Wire
	tenants   func(base *url.URL) []*proxy.Tenant
	store     func(session.Store) session.Store // wraps the store
	sessions  engine.Sessions
	tokens    engine.Tokens
	window    int // tokens, of every model
	now       func() time.Time
	spans     *observe.Spans
	lines     bool                              // of requests, in the log
	models    func(name string) proxy.ModelInfo // instead of one that takes every name
}

// rig is a server with everything that it needs, on loopback. When the test ends the server is shut down, and must have released everything.
type rig struct {
	t       *testing.T
	up      *fakeupstream.Server
	server  *proxy.Server
	engine  *engine.Engine
	live    proxy.Live // as at the start
	metrics *observe.Metrics
	logs    *observer.ObservedLogs
	store   session.Store
	addr    string
	client  *http.Client
	final   map[string]float64 // what series must have come to when all is over
	sending sync.WaitGroup     // request bodies that the transport has not closed yet
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	r := &rig{t: t, metrics: observe.NewMetrics(), final: map[string]float64{
		"dewpoint_panics_total": 0, "dewpoint_requests_in_flight": 0, "dewpoint_bytes_in_flight": 0,
	}}
	if s.base == "" {
		r.up = fakeupstream.New(s.upstream)
		must(t, r.up.Start())
		t.Cleanup(r.up.Close)
		s.base = r.up.URL() + "/v1"
	}
	r.openStore(s)
	var core zap.Option
	core, r.logs = observed()
	options := s.options(r, zap.NewNop().WithOptions(core))
	r.live = options.Live
	r.server = proxy.New(options)
	r.metrics.Gauges(observe.Gauges{
		InFlight: r.server.InFlight, Limit: func() int64 { return options.Limits.InFlight },
		Degraded: r.server.Degraded, Cooling: r.server.Cooling, Held: r.server.Held,
	})
	r.serve()
	return r
}

func (r *rig) openStore(s setup) {
	r.t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(r.t.TempDir(), "store.db"), Content: true})
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, store.Close()) })
	r.store = store
	if s.store != nil {
		r.store = s.store(store)
	}
}

func (s setup) options(r *rig, log *zap.Logger) proxy.Options {
	base, err := url.Parse(s.base)
	must(r.t, err)
	if s.condenser == nil {
		s.condenser = condense.Noop{}
	}
	tenants := []*proxy.Tenant{{
		Tenant:   engine.Tenant{Name: "default", Anonymous: true, Condenser: s.condenser},
		Upstream: proxy.UpstreamConfig{BaseURL: base},
	}}
	if s.tenants != nil {
		tenants = s.tenants(base)
	}
	limits := proxy.DefaultLimits()
	limits.AcceptGrace = time.Millisecond // only tests of Shutdown open connections meanwhile
	if s.limits != nil {
		s.limits(&limits)
	}
	turns := engine.DefaultLimits()
	turns.Store = patience // a busy machine is no store that is away
	if s.turns != nil {
		s.turns(&turns)
	}
	if s.tokens == nil {
		s.tokens = quarters{}
	}
	if s.sessions == nil {
		s.sessions = newSessions(r.t, r.store)
	}
	if s.transport == nil {
		transport := proxy.NewTransport(0, dial.Guard{})
		r.t.Cleanup(transport.CloseIdleConnections)
		s.transport = transport
	}
	if s.dialect == nil {
		s.dialect = chat.New(chat.Options{Fields: agents.SessionFields(), Remember: 8 << 20})
	}
	if s.models == nil {
		s.models = func(name string) proxy.ModelInfo {
			return proxy.ModelInfo{Model: engine.Model{Name: name, Window: s.window}}
		}
	}
	e, err := engine.New(engine.Options{Sessions: s.sessions, Tokens: s.tokens, Limits: turns, Now: s.now})
	must(r.t, err)
	r.engine = e
	o := proxy.Options{
		Live: proxy.Live{
			Tenants:  tenants,
			Dialects: map[string]dialect.Dialect{chat.Path: s.dialect},
			Plugs:    s.plugs,
			Models:   s.models,
		},
		Upstream: sender{s.transport, &r.sending}, Engine: e, Log: log,
		Limits: limits, Observer: r.metrics.Observer(nil), Faults: r.metrics, Now: s.now,
	}
	if s.lines {
		o.Observer = r.metrics.Observer(log)
	}
	if s.spans != nil {
		o.Tracer = s.spans
	}
	return o
}

func (r *rig) serve() {
	r.t.Helper()
	listener, err := listen.Open("127.0.0.1:0", nil)
	must(r.t, err)
	r.addr = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }()
	transport := &http.Transport{DisableCompression: true}
	r.client = &http.Client{Transport: transport}
	r.t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(r.t, r.server.Shutdown(ctx))
		must(r.t, <-served)
		must(r.t, r.engine.Close(ctx))
		r.check()
	})
}

// check checks the conditions that hold at the end of every test.
func (r *rig) check() {
	r.t.Helper()
	r.sending.Wait() // a transport may close a body later than it gives the answer
	if n := r.server.InFlight(); n != 0 {
		r.t.Errorf("%d request bytes are still held", n)
	}
	for series, want := range r.final {
		if got := r.metric(series); got != want {
			r.t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for _, entry := range r.logs.All() {
		if text := logged(entry); strings.Contains(text, keyMark) {
			r.t.Errorf("a credential was logged: %s", text)
		}
	}
	if strings.Contains(r.scrape(), keyMark) {
		r.t.Error("a credential is in the metrics")
	}
}

// sender is a transport that counts the bodies that it has not closed yet.
type sender struct {
	http.RoundTripper
	open *sync.WaitGroup
}

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	counted := func(body io.ReadCloser) io.ReadCloser {
		s.open.Add(1)
		return &countedBody{ReadCloser: body, closed: sync.OnceFunc(s.open.Done)}
	}
	if get := r.GetBody; get != nil {
		r.Body = counted(r.Body)
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := get()
			return counted(body), err
		}
	}
	return s.RoundTripper.RoundTrip(r)
}

type countedBody struct {
	io.ReadCloser
	closed func()
}

func (b *countedBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// atEnd sets the value that a series must have after the shutdown.
func (r *rig) atEnd(series string, want float64) { r.final[series] = want }

func observed() (zap.Option, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.WrapCore(func(zapcoreCore) zapcoreCore { return core }), logs
}

// scrape returns the metrics as Prometheus would read them.
func (r *rig) scrape() string {
	w := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// metric returns the value of a series, 0 if there is none.
func (r *rig) metric(series string) float64 {
	r.t.Helper()
	for line := range strings.Lines(r.scrape()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(r.t, err)
			return v
		}
	}
	return 0
}

// guard returns a context that ends a test that would otherwise hang.
func guard(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixedSessions is a single registry that is open from the start.
type fixedSessions struct {
	registry *session.Registry
	store    session.Store
}

var testSecret = session.Secret("a secret of thirty-two bytes, so")

func newSessions(t *testing.T, store session.Store) fixedSessions {
	t.Helper()
	registry := session.NewRegistry(store, testSecret)
	return fixedSessions{registry, store}
}

func (s fixedSessions) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	return s.registry, s.store, testSecret, nil
}

// quarters counts a token for every four bytes.
type quarters struct{}

func (quarters) Counter(string) engine.Counter  { return quarters{} }
func (quarters) Observe(string, int, int, bool) {}
func (quarters) Adjust(_ string, n int) int     { return n }
func (quarters) Encoding() string               { return "quarters" }
func (quarters) Text(s string) int              { return (len(s) + 3) / 4 }
func (q quarters) Message(c session.Content) int {
	n := 4 + q.Text(c.Text)
	for _, call := range c.Calls {
		n += q.Text(call.Name) + q.Text(call.Arguments)
	}
	return n
}

// drain reads a response to its end.
func drain(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(body)
}

// one returns an anonymous tenant with a change.
func one(change func(*proxy.Tenant)) func(*url.URL) []*proxy.Tenant {
	return func(base *url.URL) []*proxy.Tenant {
		t := &proxy.Tenant{
			Tenant:   engine.Tenant{Name: "default", Anonymous: true, Condenser: condense.Noop{}},
			Upstream: proxy.UpstreamConfig{BaseURL: base},
		}
		change(t)
		return []*proxy.Tenant{t}
	}
}
