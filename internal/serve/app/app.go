// Package app is the composition root. It builds the service from a configuration, starts it and stops it.
package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/served"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/tools"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// App is the running service.
type App struct {
	config    *config.Config // the configuration at start
	loaded    *config.Config // the configuration applied last, including settings that need a restart
	options   Options
	log       *zap.Logger
	server    *proxy.Server
	tokens    *tokenCounters
	engine    *engine.Engine
	calls     *calls
	marks     *proxy.Marks
	overrides overrides
	metrics   *observe.Metrics

	sessions *lazyRegistry
	journal  *journal.Journal
	runs     *runs.Registry
	control  *runs.Control // nil: no other process can begin runs
	ports
	lifecycle
	reloading sync.Mutex
	refused   refusedTenants
	health    healthState
}

// ports holds the data port and the admin port.
type ports struct {
	dataListener  net.Listener
	adminListener net.Listener // nil: no admin port
	admin         *http.Server // nil: no admin port
	startToken    string       // see AdminToken
	serving       sync.WaitGroup
	failed        chan error
}

// Options are settings that are not part of the configuration.
type Options struct {
	Traced            bool               // export traces if OpenTelemetry's environment variables configure a collector
	Version, Revision string             // version of the program, and revision of the source it was built from
	Watcher           observe.Watcher    // receives requests that have ended and own calls; may be nil
	Config            string             // the configuration file; empty: none
	Runs              bool               // let other processes begin runs of agents
	HoldPort          bool               // let other processes hold the data port: see platform.Hold
	Encoders          *tokenize.Registry // vocabularies that other services of the process share; nil: the service loads its own
	Now               func() time.Time   // when requests begin and end; nil: time.Now
}

// New builds the service and opens its store and listeners. If it fails, it releases everything it has opened.
func New(cfg *config.Config, log *zap.Logger, o Options) (_ *App, err error) {
	o.Version = cmp.Or(o.Version, "dev")
	o.Encoders = cmp.Or(o.Encoders, tokenize.New())
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &App{
		config: cfg, loaded: cfg, options: o, log: log, metrics: observe.NewMetrics(), runs: runs.NewRegistry(), ports: ports{failed: make(chan error, 2)},
	}
	if !cfg.Admin.Locked() {
		a.startToken = rand.Text()
	}
	a.metrics.Build(o.Version, o.Revision)
	a.metrics.Watch(o.Watcher)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.Background()))
		}
	}()
	spans, err := a.openTraces()
	if err != nil {
		return nil, err
	}
	backend, err := openStore(cfg, log)
	if err != nil {
		return nil, err
	}
	kept := backend
	if !cfg.Store.Records {
		kept = session.WithoutRecords(backend)
	}
	store := session.Guard(kept, nil) // for operators: only the store calls of requests are measured
	a.onStop("store", func(context.Context) error { return store.Close() })
	a.openJournal(session.Guard(kept, a.metrics.StoreCalls()))
	a.health.store = store
	a.overrides.store, a.overrides.log = store, log
	a.overrides.refresh(context.Background()) // before anything is served; later if the store is unavailable
	a.marks = proxy.NewMarks(func() session.Secret {
		_, secret := a.sessions.current()
		return secret
	})
	a.calls = newCalls(nil, log)
	a.calls.mark = a.marks.Transport
	transport := proxy.NewTransport(0, dial.Guard{Own: &a.calls.own})
	a.calls.transport = a.marks.Transport(transport)
	a.onStopFunc("upstream connections", func() {
		transport.CloseIdleConnections()
		a.calls.confined.closeAll()
	})
	a.calls.metrics = a.metrics
	a.calls.spans = spans
	a.calls.draw = drawFrom(backend, cfg.Store.Timeout, a.metrics)
	a.onStop("knowledge", func(context.Context) error { return a.calls.knowledge.closeUnused(nil) })
	a.calls.memory = findings.New(store, watchFindings{a.metrics, a.log}) // delivers nothing until it has routes
	a.onStop("delivery of findings", a.calls.memory.Close)
	if err := a.buildEngine(session.Guard(kept, a.metrics.StoreCalls())); err != nil {
		return nil, err
	}
	if err := a.buildServer(sizeOf(backend, int64(cfg.Store.MaxSize))); err != nil {
		return nil, err
	}
	if err := a.listen(); err != nil {
		return nil, err
	}
	if err := a.serveRuns(); err != nil {
		return nil, err
	}
	a.announce(backend)
	a.configApplied(cfg)
	return a, a.buildAdmin(store)
}

// LinesLost counts lost log lines.
func (a *App) LinesLost(lines int) { a.metrics.LinesLost(lines) }

func (a *App) buildEngine(store session.Backend) error {
	windows := served.New(a.calls.windowTransport)
	a.onStopFunc("window queries", windows.Close)
	a.tokens = &tokenCounters{Calibration: &tokenize.Calibration{}, encoders: a.options.Encoders}
	a.tokens.config.Store(a.config)
	limits := engine.DefaultLimits()
	limits.Store = a.config.Store.Timeout
	var err error
	a.sessions = &lazyRegistry{store: store, secret: session.Secret(a.config.Store.Secret.Reveal())}
	a.engine, err = engine.New(engine.Options{Sessions: a.sessions, Tokens: a.tokens, Windows: windows, Limits: limits})
	if err != nil {
		return fmt.Errorf("build engine: %w", err)
	}
	a.onStop("condensations", a.stopCondensations)
	return nil
}

func (a *App) buildServer(embedded func() (observe.StoreSize, bool)) error {
	live, err := a.live(a.config)
	if err != nil {
		return err
	}
	observer := a.metrics.Observer(nil)
	if a.config.Log.Requests {
		observer = a.metrics.Observer(a.log)
	}
	o := proxy.Options{
		Live: live, Upstream: a.calls.transport, Marks: a.marks, Engine: a.engine, Limits: limits(a.config), Log: a.log,
		Faults: a.metrics, Observer: recorded{observer, a.journal}, Runs: a.runs.Find,
		Tools: tools.New(a.engine, a.options.Version), Now: a.options.Now,
	}
	if a.calls.spans != nil {
		o.Tracer = a.calls.spans
	}
	a.server = proxy.New(o)
	a.metrics.Gauges(observe.Gauges{
		InFlight: a.server.InFlight, Limit: func() int64 { return o.Limits.InFlight },
		Degraded: a.server.Degraded, Cooling: a.server.Cooling, Held: a.server.Held,
		Holdouts: a.holdouts, Budgets: a.budgets, Embedded: embedded, Pending: a.calls.memory.Pending, Refused: a.refused.byName,
	})
	return nil
}

// live builds the part of a configuration that can be replaced while the service runs.
func (a *App) live(cfg *config.Config) (proxy.Live, error) {
	tenants, err := buildTenants(cfg, a.calls)
	if err != nil {
		return proxy.Live{}, err
	}
	a.calls.useForWindows(cfg)
	a.applyOverrides(tenants)
	fields := sessionFields(cfg)
	remember := int(cfg.Limits.InFlight(memoryLimit()) / 24) // bytes of earlier bodies, for each dialect
	routes := protocols.Serve(split.Options{Fields: fields, Remember: remember})
	return proxy.Live{
		Tenants:  tenants,
		Refused:  refusedKeys(cfg),
		Origins:  origins(cfg),
		Dialects: routes.Answers,
		Counts:   routes.Counts,
		Compacts: routes.Compacts,
		Plugs:    plugs(),
		Models:   models(cfg),
		Headers:  cfg.Session.Headers,
		Fields:   fields,
	}, nil
}

// plugs are the wires by which gateways ask for a condensed history, by their paths below the base URL.
func plugs() map[string]plug.Wire {
	return map[string]plug.Wire{
		plug.LiteLLMPath:  plug.LiteLLM{Path: chat.Path},
		plug.PortkeyPath:  plug.Portkey{Paths: map[string]string{"chatComplete": chat.Path, "messages": messages.Path}},
		plug.CompressPath: plug.Compress{Chat: chat.Path, Messages: messages.Path, Items: responses.Path},
	}
}

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
		m, known := cfg.ModelFor(name)
		return proxy.ModelInfo{
			Model: engine.Model{
				Name: known, Window: m.ContextWindow, MaxOutput: m.MaxOutput, Alternates: m.AlternateRoles,
				Configured: cfg.Models[known].ContextWindow > 0,
			},
			Price: m.Price,
		}
	}
}

func limits(cfg *config.Config) proxy.Limits {
	l := proxy.DefaultLimits()
	l.Body, l.InFlight = int64(cfg.Limits.MaxBody), int64(cfg.Limits.InFlight(memoryLimit()))
	l.Header = int(cfg.Limits.MaxHeader)
	l.AnswerWait = cfg.Limits.UpstreamResponseHeaderTimeout // our own calls have limits of their own
	l.StreamIdle, l.KeepAlive = cfg.Limits.StreamIdleTimeout, cfg.Limits.StreamKeepAlive
	return l
}

// listen opens the ports, so that a port that is in use is reported before anything is served.
func (a *App) listen() error {
	var prepare func(network, address string, socket syscall.RawConn) error
	if a.options.HoldPort {
		prepare = platform.Holdable
	}
	var err error
	if a.dataListener, err = listen.Open(a.config.Listen, prepare); err != nil {
		return fmt.Errorf("%w: choose another address with --listen or DEWPOINT_LISTEN", err)
	}
	a.onStop("data listener", func(context.Context) error { return ignoreClosed(a.dataListener.Close()) })
	a.calls.own.Set(a.dataListener.Addr())
	if a.config.Admin.Listen == "" {
		return nil
	}
	if a.adminListener, err = net.Listen("tcp", a.config.Admin.Listen); err != nil {
		return fmt.Errorf("admin.listen: %w: choose another address with --admin or DEWPOINT_ADMIN_LISTEN", err)
	}
	a.calls.own.Set(a.dataListener.Addr(), a.adminListener.Addr())
	a.onStop("admin listener", func(context.Context) error { return ignoreClosed(a.adminListener.Close()) })
	return nil
}

// Start starts serving in the background.
func (a *App) Start() {
	a.onStop("server", func(ctx context.Context) error {
		err := errors.Join(a.stopServer(ctx), a.stopAdmin())
		err = errors.Join(err, ignoreClosed(a.dataListener.Close())) // ends Serve even if it starts only now
		a.serving.Wait()
		return err
	})
	a.watchHealth()
	a.followStore()
	a.serving.Go(func() {
		if err := a.server.Serve(a.dataListener); err != nil && !errors.Is(err, net.ErrClosed) {
			a.failed <- err
		}
	})
	if a.admin == nil {
		return
	}
	a.serving.Go(func() {
		if err := a.admin.Serve(a.adminListener); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("serve admin: %w", err)
		}
	})
}

// Failed returns a channel that receives an error if serving ends unexpectedly.
func (a *App) Failed() <-chan error { return a.failed }

// Addr returns the data port's address.
func (a *App) Addr() string { return a.dataListener.Addr().String() }

// AdminAddr returns the admin port's address, or "" if there is no admin port.
func (a *App) AdminAddr() string {
	if a.adminListener == nil {
		return ""
	}
	return a.adminListener.Addr().String()
}
