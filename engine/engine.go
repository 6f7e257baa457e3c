// Package engine runs one turn over a request's history: it recognises the thread, projects the view, condenses it
// where that is due, joins the body that goes upstream and writes what was said to the store. It knows no connection, no logger
// and no metrics: it gets an Input and returns Reports. turn.go has the turn, in order.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Options are what an Engine is made of.
type Options struct {
	Sessions Sessions
	Tokens   Tokens
	Windows  Windows // nil: no server is asked
	Limits   Limits
	Now      func() time.Time // time.Now by default
}

// Sessions gives the registry, or an error while the store is away.
type Sessions interface {
	Registry(ctx context.Context) (*session.Registry, session.Store, session.Secret, error)
}

// Tokens counts.
type Tokens interface {
	Counter(model string) Counter
	// Observe tells what upstream counted for a request that was counted here, partly by estimates. The source names what requests it is
	// true of.
	Observe(source string, counted, actual int, estimated bool)
	// Adjust corrects a count by what was observed of the source.
	Adjust(source string, counted int) int
}

// Counter counts in one encoding.
type Counter interface {
	Encoding() string
	Text(s string) int
	Message(c session.Content) int
	Tools(raw []byte) int
}

// Model is what a model may hold, in tokens.
type Model struct {
	Name      string // as configured or built in, not as the client spells it; empty for an unknown model
	Window    int
	MaxOutput int

	Configured bool // the operator says so: no server's word on the window counts
	Alternates bool // upstream takes no two messages of a user, or of an assistant, in a row
}

// Windows is what servers say of the windows they serve models with.
type Windows interface {
	// Window is what the server at a base URL told of a model's window, in tokens; 0: nothing.
	Window(baseURL, model string) int
	// Ask asks it, in the background and not too often, with the key that requests to it carry.
	Ask(baseURL, key, model string)
}

// Limits bound how long a turn may take.
type Limits struct {
	Store         time.Duration // for one turn's reads of the store
	Condense      time.Duration // for one condensation, summariser included
	CondenseLease time.Duration // how long a replica that died holds its thread's lock at most; others renew it
}

// DefaultLimits are sensible for a shared proxy.
func DefaultLimits() Limits {
	return Limits{Store: time.Second, Condense: 5 * time.Minute, CondenseLease: 5 * time.Second}
}

// Tenant is what a turn must know of the user whose request it is.
type Tenant struct {
	Name      string
	Anonymous bool // any key passes; clients are told apart by their credential
	Condenser condense.Condenser
	Observe   bool          // decide and report, forward unchanged
	Off       bool          // forward unchanged, whatever its clients want
	Deadline  time.Duration // how long a request waits for a condensation; 0: DefaultDeadline
	Never     bool          // a request never waits for a model, unless its client asks for a condensation
	Ahead     bool          // the condenser has summaries prepared
	Holdout   float64       // share of sessions that are left alone, to compare with
	Hidden    Hidden
	Knowledge Knowledge
	Warm      *Warm         // nil: its prompts leave caches when their time is over
	Repeats   limit.Repeats // with After

	// Promise is told of a condensation before it is logged; the function that it returns is called once it is. Nil: nothing is.
	Promise func(context.Context, session.ThreadID, *session.Condensation) (logged func())
}

// Passes reports whether its requests are forwarded as they come.
func (t *Tenant) Passes() bool { return t.Observe || t.Off }

// Settings are the part of the configuration that can be replaced while the engine runs. A turn ends under those that it
// began with.
type Settings struct {
	Tenants  []*Tenant
	Dialects []dialect.Dialect // in which histories are logged
	Models   func(name string) Model
	Headers  []string // that name a session; agents.SessionHeaders if empty
	Fields   []string // of the body, likewise
}

// Engine runs turns, any number at a time. Close it.
type Engine struct {
	o        Options
	settings atomic.Pointer[Settings]
	memory   *memory
	counts   *countCache
	flights  *flights
	warm     *warmth
}

// New makes an engine. It has no settings until Swap.
func New(o Options) (*Engine, error) {
	if o.Sessions == nil || o.Tokens == nil {
		return nil, errors.New("new engine: sessions and tokens are needed")
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	e := &Engine{o: o, memory: newMemory(), counts: newCountCache(), flights: newFlights()}
	e.warm = newWarmth(e)
	return e, nil
}

// Swap puts other settings in force for the turns that begin from now on.
func (e *Engine) Swap(s Settings) *Settings {
	if len(s.Headers) == 0 {
		s.Headers = agents.SessionHeaders()
	}
	if len(s.Fields) == 0 {
		s.Fields = agents.SessionFields()
	}
	e.memory.purge()
	e.warm.clear()
	e.settings.Store(&s)
	return &s
}

// tenant gives the tenant of that name. One that is not configured any more has no condenser.
func (s *Settings) tenant(name string) *Tenant {
	for _, t := range s.Tenants {
		if t.Name == name {
			return t
		}
	}
	return &Tenant{Name: name, Condenser: condense.Noop{}}
}

// dialect gives that of a name, nil if it is not served.
func (s *Settings) dialect(name string) dialect.Dialect {
	for _, d := range s.Dialects {
		if d.Name() == cmp.Or(name, "chat") {
			return d
		}
	}
	return nil
}

// Reach asks the store for a thread that does not exist: it returns nil if the store answers.
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

// Reserve is the store's. It waits for it no longer than a turn does.
func (e *Engine) Reserve(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, err error) {
	err = e.stored(ctx, func(ctx context.Context, s session.Store, _ session.Secret) (err error) {
		out, err = s.Reserve(ctx, id, charges)
		return err
	})
	return out, err
}

// Settle is the store's, likewise.
func (e *Engine) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return e.stored(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error { return s.Settle(ctx, id, charges) })
}

// stored does something with the store, for no longer than a turn waits for it.
func (e *Engine) stored(ctx context.Context, do func(context.Context, session.Store, session.Secret) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Store)
	defer cancel()
	_, store, secret, err := e.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	return do(ctx, store, secret)
}
