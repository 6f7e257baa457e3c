// Package app is the composition root: it builds the service from a configuration, starts it and stops it. Nothing
// else knows all the parts.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/served"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// App is the running service.
type App struct {
	config  *config.Config // that it started with
	loaded  *config.Config // that was last applied, what waits for a restart included
	log     *zap.Logger
	server  *proxy.Server
	tokens  *tokens
	engine  *engine.Engine
	calls   *calls // of summarisers
	shelves *shelves
	levers  levers
	ports
	telemetry
	underway
	reloading sync.Mutex
	health    healthState
	storeWait time.Duration // of a turn; 0: the default
}

// underway is what ends with the service.
type underway struct {
	lifecycle lifecycle
	serving   sync.WaitGroup
	failed    chan error
}

// ports are the data port and the admin port.
type ports struct {
	data, adm net.Listener
	admin     *http.Server // nil: there is no admin port
}

// telemetry is what is told of the service.
type telemetry struct {
	metrics           *observe.Metrics
	embedded          func() (observe.StoreSize, bool) // nil: the store is another one
	spans             *observe.Spans                   // nil: nothing is traced
	traced            bool                             // the environment may ask for traces
	version, revision string
}

// Part is something about the process that its configuration does not say.
type Part func(*App)

// WithTraces sends traces to where OpenTelemetry's environment variables say, if they do.
func WithTraces() Part { return func(a *App) { a.traced = true } }

// WithVersion says which version runs, and of which revision of the source it is.
func WithVersion(version, revision string) Part {
	return func(a *App) { a.version, a.revision = version, revision }
}

// WithLog counts the lines that a log loses.
func WithLog(l *Log) Part { return func(a *App) { l.Lost(a.metrics.LinesLost) } }

// WithStoreWait lets a request wait that long for the store, where it does not matter how soon it is answered.
func WithStoreWait(d time.Duration) Part { return func(a *App) { a.storeWait = d } }

// New builds the service and opens its store and listeners. What it made is undone if it fails.
func New(cfg *config.Config, log *zap.Logger, parts ...Part) (_ *App, err error) {
	a := &App{
		config: cfg, loaded: cfg, log: log, underway: underway{failed: make(chan error, 2)},
		telemetry: telemetry{metrics: observe.NewMetrics(), version: "dev"},
	}
	for _, part := range parts {
		part(a)
	}
	a.metrics.Build(a.version, a.revision)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.lifecycle.stop(context.Background()))
		}
	}()
	if err := a.openTraces(); err != nil {
		return nil, err
	}
	backend, err := openStore(cfg)
	if err != nil {
		return nil, err
	}
	store := session.Guard(backend, nil) // for operators; what requests ask of it is measured
	a.lifecycle.onStop("store", func(context.Context) error { return store.Close() })
	a.health.store = store
	a.levers.store, a.levers.log = store, log
	a.levers.begin()
	a.calls = &calls{metrics: a.metrics, spans: a.spans, draw: drawFrom(backend, a.metrics)}
	a.openMemory(store)
	a.embedded = sizeOf(backend, int64(cfg.Store.MaxSize))
	if err := a.buildServer(session.Guard(backend, a.metrics.StoreCalls())); err != nil {
		return nil, err
	}
	if err := a.listen(); err != nil {
		return nil, err
	}
	a.tookEffect(cfg)
	return a, a.buildAdmin(store)
}

func (a *App) buildServer(store session.Store) error {
	transport := proxy.NewTransport(a.config.Limits.UpstreamResponseHeaderTimeout)
	a.lifecycle.onStop("upstream connections", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	a.tokens = &tokens{Calibration: &tokenize.Calibration{}, encoders: tokenize.New()}
	a.tokens.config.Store(a.config)
	forTurns, forRequests := limits(a.config)
	if a.storeWait > 0 {
		forTurns.Store = a.storeWait
	}
	var err error
	a.shelves = newShelves(a.log)
	a.lifecycle.onStop("knowledge", a.shelves.stop)
	a.calls.shelves, a.calls.transport = a.shelves, transport
	if a.calls.health, err = summariser.NewHealth(time.Now); err != nil {
		return fmt.Errorf("build server: %w", err)
	}
	if a.calls.lacks, err = summariser.NewLacks(time.Now); err != nil {
		return fmt.Errorf("build server: %w", err)
	}
	windows, err := served.New(transport, time.Now)
	if err != nil {
		return fmt.Errorf("build engine: %w", err)
	}
	a.lifecycle.onStop("inquiries for windows", func(context.Context) error {
		windows.Close()
		return nil
	})
	a.engine, err = engine.New(engine.Options{
		Sessions: &sessions{store: store, secret: session.Secret(a.config.Store.Secret.Reveal())},
		Tokens:   a.tokens, Windows: windows, Limits: forTurns,
	})
	if err != nil {
		return fmt.Errorf("build engine: %w", err)
	}
	a.lifecycle.onStop("condensations", a.stopCondensations)
	live, err := a.live(a.config)
	if err != nil {
		return err
	}
	o := proxy.Options{Live: live, Upstream: transport, Engine: a.engine, Limits: forRequests, Log: a.log}
	a.observe(&o)
	if a.server, err = proxy.New(o); err != nil {
		return fmt.Errorf("build server: %w", err)
	}
	a.metrics.Gauges(observe.Gauges{
		InFlight: a.server.InFlight, Limit: func() int64 { return forRequests.InFlight },
		Degraded: a.server.Degraded, Cooling: a.server.Cooling, Held: a.server.Held,
		Holdouts: a.holdouts, Embedded: a.embedded, Pending: a.calls.memory.Pending(),
	})
	return nil
}

// observe has metrics, the log and traces told of requests.
func (a *App) observe(o *proxy.Options) {
	o.Faults, o.Observer = a.metrics, a.metrics.Observer(nil)
	if a.config.Log.Requests {
		o.Observer = a.metrics.Observer(a.log)
	}
	if a.spans != nil {
		o.Tracer = a.spans
	}
}

// live compiles the part of a configuration that can be replaced while the service runs.
func (a *App) live(cfg *config.Config) (proxy.Live, error) {
	tenants, err := buildTenants(cfg, a.calls)
	if err != nil {
		return proxy.Live{}, err
	}
	a.apply(tenants)
	fields := sessionFields(cfg)
	remember := remembered(cfg) / 3
	completions := chat.New(chat.Options{Fields: fields, Remember: remember})
	anthropic := messages.New(split.Options{Fields: fields, Remember: remember})
	items := responses.New(split.Options{Fields: fields, Remember: remember})
	return proxy.Live{
		Tenants:  proxy.NewTenants(tenants...),
		Dialects: map[string]dialect.Dialect{chat.Path: completions, messages.Path: anthropic, responses.Path: items},
		Counts:   map[string]dialect.Dialect{messages.CountPath: anthropic, responses.CountPath: items},
		Compacts: map[string]dialect.Dialect{responses.CompactPath: items},
		Models:   models(cfg),
		Headers:  cfg.Session.Headers,
		Fields:   fields,
	}, nil
}

// remembered is how many bytes of earlier bodies are kept in memory, for what begins alike to cost less.
func remembered(cfg *config.Config) int { return int(cfg.Limits.InFlight(memory()) / 8) }

func sessionFields(cfg *config.Config) []string {
	fields := cfg.Session.BodyFields
	if len(fields) == 0 {
		fields = agents.SessionFields()
	}
	if cfg.Session.PromptCacheKey {
		fields = append(fields, agents.CacheKeyFields()...)
	}
	return fields
}

func models(cfg *config.Config) func(string) proxy.ModelInfo {
	return func(name string) proxy.ModelInfo {
		m, known := cfg.ModelNamed(name)
		return proxy.ModelInfo{
			Model: engine.Model{
				Name: known, Window: m.ContextWindow, MaxOutput: m.MaxOutput, Alternates: m.AlternateRoles,
				Configured: cfg.Models[known].ContextWindow > 0,
			},
			Price: m.Price,
		}
	}
}

// limits are those of a turn, and those of a request.
func limits(cfg *config.Config) (engine.Limits, proxy.Limits) {
	t, l := engine.DefaultLimits(), proxy.DefaultLimits()
	l.Body, l.InFlight = int64(cfg.Limits.MaxBody), int64(cfg.Limits.InFlight(memory()))
	l.Header = int(cfg.Limits.MaxHeader)
	l.StreamIdle, l.KeepAlive = cfg.Limits.StreamIdleTimeout, cfg.Limits.StreamKeepAlive
	t.Condense = max(t.Condense, 3*longestCall(cfg))
	return t, l
}

// listen opens the ports, so that a port in use is known before anything is served.
func (a *App) listen() error {
	var err error
	if a.data, err = listen.Open(a.config.Listen); err != nil {
		return err
	}
	a.lifecycle.onStop("data listener", func(context.Context) error { return closed(a.data.Close()) })
	if a.config.Admin.Listen == "" {
		return nil
	}
	if a.adm, err = net.Listen("tcp", a.config.Admin.Listen); err != nil {
		return fmt.Errorf("listen (admin.listen): %w", err)
	}
	a.lifecycle.onStop("admin listener", func(context.Context) error { return closed(a.adm.Close()) })
	return nil
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Start begins to serve. It does not wait.
func (a *App) Start() {
	a.lifecycle.onStop("server", func(ctx context.Context) error {
		err := errors.Join(a.drained(ctx), a.stopAdmin())
		err = errors.Join(err, closed(a.data.Close())) // if serving has not begun yet, it does not
		a.serving.Wait()
		return err
	})
	a.watchHealth()
	a.followLevers()
	a.serving.Go(func() {
		if err := a.server.Serve(a.data); err != nil && !errors.Is(err, net.ErrClosed) {
			a.failed <- err
		}
	})
	if a.admin == nil {
		return
	}
	a.serving.Go(func() {
		if err := a.admin.Serve(a.adm); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("serve admin: %w", err)
		}
	})
}

// Failed tells if serving ends by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Stop ends the service: requests under way are finished until ctx ends, and cut off then, which the log tells; in any
// case the store is written. A second call does nothing.
func (a *App) Stop(ctx context.Context) error { return a.lifecycle.stop(ctx) }

// Addr is the data port's address.
func (a *App) Addr() string { return a.data.Addr().String() }

// AdminAddr is the admin port's address, empty if there is none.
func (a *App) AdminAddr() string {
	if a.adm == nil {
		return ""
	}
	return a.adm.Addr().String()
}

// longestCall is how long a summariser may be silent at most, by all that is configured.
func longestCall(cfg *config.Config) time.Duration {
	longest := cfg.Limits.SummariserTimeout
	for _, llm := range cfg.LLMs {
		longest = max(longest, llm.Timeout)
	}
	var look func(config.Condenser)
	look = func(c config.Condenser) {
		longest = max(longest, c.Timeout)
		for _, stage := range c.Condensers {
			look(stage)
		}
	}
	look(cfg.Condenser)
	for _, t := range cfg.Tenants {
		look(cfg.CondenserFor(t))
	}
	return longest
}
