// Package engine runs one turn over a request's history: it recognises the thread, projects the view, condenses it when that is due,
// joins the body that goes upstream, and logs the new messages. It has no connection, logger or metrics: it takes an Input and
// returns Reports. Start reading at turn.go.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/engine/summaries"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Options configure an Engine. Sessions and Tokens are required.
type Options struct {
	Sessions Sessions
	Tokens   Tokens
	Windows  Windows          // nil: servers are not asked for their windows
	Limits   Limits           // DefaultLimits if zero
	Now      func() time.Time // time.Now if nil
}

// Sessions provides the registry.
type Sessions interface {
	// Registry returns an error while the store is unavailable.
	Registry(ctx context.Context) (*session.Registry, session.Store, session.Secret, error)
}

// Tokens provides token counters and calibrates their counts.
type Tokens interface {
	Counter(model string) Counter
	// Observe records that upstream counted actual tokens for a request that was counted here as counted; estimated says that the count
	// includes estimates. It applies to requests of the same source.
	Observe(source string, counted, actual int, estimated bool)
	// Adjust calibrates a count by the observations for the source.
	Adjust(source string, counted int) int
}

// Counter counts tokens in one encoding.
type Counter interface {
	Encoding() string
	Text(s string) int
	Message(c session.Content) int
}

// Model holds the limits of a model, in tokens.
type Model struct {
	Name      string // configured or built-in name, not the client's spelling; empty if unknown
	Window    int
	MaxOutput int

	Configured bool // the window is configured, so what servers report about it is ignored
	Alternates bool // upstream rejects consecutive messages of the same role
}

// Windows asks servers which context window they serve a model with.
type Windows interface {
	// Window returns the window that the server at baseURL reported, in tokens; 0: none yet.
	Window(baseURL, model string) int
	// Ask asks the server in the background, at a bounded rate, for a tenant and using the key of the client's requests.
	Ask(tenant, baseURL, key, model string)
}

// Limits bound how long a turn may take.
type Limits struct {
	Store         time.Duration // for one turn's reads of the store
	CondenseLease time.Duration // TTL of a thread's lock, which live replicas renew
}

// DefaultLimits returns limits that suit a shared proxy.
func DefaultLimits() Limits {
	return Limits{Store: time.Second, CondenseLease: 5 * time.Second}
}

// Tenant is the part of a tenant's configuration that a turn needs.
type Tenant struct {
	Name      string
	Anonymous bool // any key is accepted; the credential tells clients apart
	Condenser condense.Condenser
	Observe   bool          // decide and report, but forward unchanged
	Off       bool          // forward unchanged, even if a client asks for condensing
	Deadline  time.Duration // how long a request waits for a condensation; 0: DefaultDeadline
	Never     bool          // requests never wait for a summary, unless the client asks for a condensation
	Ahead     bool          // prepare summaries before they are due
	Holdout   session.Holdout
	Arm       *Strategy // of the sessions that are held out; nil: they are not condensed
	Hidden    Hidden
	Knowledge Knowledge

	CondenseTimeout time.Duration // for one condensation, summariser included; 0: DefaultCondenseTimeout

	// Promise is called before a condensation is logged. The returned function is called once it is logged. Promise may be nil.
	Promise func(context.Context, session.ThreadID, *session.Condensation) (logged func())
}

// Strategy is how sessions are condensed. It has the fields of Tenant with the same names.
type Strategy struct {
	Condenser       condense.Condenser
	Deadline        time.Duration
	Never, Ahead    bool
	Hidden          Hidden
	CondenseTimeout time.Duration
}

// with returns the tenant with another strategy.
func (t *Tenant) with(s *Strategy) *Tenant {
	other := *t
	other.Condenser, other.Deadline, other.Never, other.Ahead = s.Condenser, s.Deadline, s.Never, s.Ahead
	other.Hidden, other.CondenseTimeout = s.Hidden, s.CondenseTimeout
	return &other
}

// Passes reports whether the tenant's requests are forwarded unchanged.
func (t *Tenant) Passes() bool { return t.Observe || t.Off }

// Settings are the part of the configuration that can be replaced while the engine runs. A turn keeps the settings it began with.
type Settings struct {
	Tenants  []*Tenant
	Dialects []dialect.Dialect // dialects of logged histories
	Models   func(name string) Model
	Headers  []string // request headers that name a session; agents.SessionHeaders if empty
	Fields   []string // body fields that name a session; agents.SessionFields if empty
}

// Engine runs turns. It is safe for concurrent use. Call Close when done.
type Engine struct {
	o         Options
	settings  atomic.Pointer[Settings]
	memory    *memory
	lessons   *lessons.Lessons
	counts    *countCache
	summaries *summaries.Service[progress]
}

// New returns an engine without settings: call Swap before the first turn.
func New(o Options) (*Engine, error) {
	if o.Sessions == nil || o.Tokens == nil {
		return nil, errors.New("new engine: set Sessions and Tokens")
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{
		o: o, memory: newMemory(), lessons: lessons.New(o.Now), counts: newCountCache(), summaries: summaries.New[progress](o.Now),
	}, nil
}

// Lessons returns what upstreams have shown.
func (e *Engine) Lessons() *lessons.Lessons { return e.lessons }

// Swap puts settings in force for turns that begin from now on, and returns them with their defaults filled in. It forgets what was
// learnt about upstreams.
func (e *Engine) Swap(s Settings) *Settings {
	if len(s.Headers) == 0 {
		s.Headers = agents.SessionHeaders()
	}
	if len(s.Fields) == 0 {
		s.Fields = agents.SessionFields()
	}
	e.lessons.Clear() // the upstreams may have been reconfigured
	e.settings.Store(&s)
	return &s
}

// tenant returns the tenant with the given name. A tenant that is no longer configured has no condenser.
func (s *Settings) tenant(name string) *Tenant {
	if i := slices.IndexFunc(s.Tenants, func(t *Tenant) bool { return t.Name == name }); i >= 0 {
		return s.Tenants[i]
	}
	return &Tenant{Name: name, Condenser: condense.Noop{}}
}

// dialect returns the dialect with the given name, nil if it is not served. An empty name means Chat Completions.
func (s *Settings) dialect(name string) dialect.Dialect {
	name = cmp.Or(name, "chat")
	if i := slices.IndexFunc(s.Dialects, func(d dialect.Dialect) bool { return d.Name() == name }); i >= 0 {
		return s.Dialects[i]
	}
	return nil
}

// Reach checks that the store answers, by reading a thread that does not exist.
func (e *Engine) Reach(ctx context.Context) error {
	_, store, _, err := e.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	if _, err := store.Thread(ctx, "missing"); err != nil && !errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("reach store: %w", err)
	}
	return nil
}

// Reserve calls the store's Reserve, within the time that a turn has for the store.
func (e *Engine) Reserve(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, err error) {
	err = e.withStore(ctx, func(ctx context.Context, s session.Store, _ session.Secret) (err error) {
		out, err = s.Reserve(ctx, id, charges)
		return err
	})
	return out, err
}

// Settle calls the store's Settle, within the time that a turn has for the store.
func (e *Engine) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return e.withStore(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error { return s.Settle(ctx, id, charges) })
}

// withStore calls do with the store, within the time that a turn has for it.
func (e *Engine) withStore(ctx context.Context, do func(context.Context, session.Store, session.Secret) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Store)
	defer cancel()
	_, store, secret, err := e.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	return do(ctx, store, secret)
}
