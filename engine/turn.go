package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Input is all that a turn is told of the request that it is for.
type Input struct {
	Settings *Settings // in force when the request came
	Tenant   *Tenant
	Upstream condense.Endpoint // where the request goes, for condensers without a model of their own
	Client
	Wish    Wish
	Dialect dialect.Dialect
	Split   *dialect.Request
	Model   Model // that Split names
	Body    Body  // that Split aliases
	Compaction

	// Condensing is told when a condensation begins: the context that it returns is for what the condensation calls, and the
	// function is called at its end, with what was made. It may be nil.
	Condensing func(context.Context, condense.Need) (context.Context, func([]session.Condensation))

	// Spent is told of each call that condensing a session makes, whatever comes of it. It may be nil.
	Spent func(session.SessionID, limit.Call)

	// Late is told, in a goroutine of its own, what came of a condensation that the request did not wait for. It may be nil.
	Late func(Report)
}

// Compaction is what a client asks for in the terms of its protocol.
type Compaction struct {
	Compacts bool   // a record of the whole history is asked for, here or upstream
	Asks     bool   // it is asked for by the last message, which is no part of the history
	Limit    int    // tokens above which the client wants the history condensed; 0: none
	Told     string // what it says of the record then
}

// Client is who sent the request, and what it calls it.
type Client struct {
	Credential string
	Header     func(name string) string // reads the request's header; called by Begin only
	Request    string                   // the request's id; empty if it has none
}

// Wish is what the client wants condensed.
type Wish string

// The wishes of clients.
const (
	WishNone Wish = ""
	WishNow  Wish = "now" // condense, whether it is due or not
	WishOff  Wish = "off" // forward unchanged
)

// Body is the bytes that a request came in. They are reused when all who hold them have released them. A request holds them until its
// answer begins: what goes on after that holds them itself.
type Body interface {
	Bytes() []byte
	Hold()
	Release()
}

// Turn is what one request goes through: recognised, projected, condensed, forwarded, logged. It is used by one goroutine
// at a time, except for what Log and Answered return.
type Turn struct {
	in     Input
	engine *Engine
	log
	counter meter
	model   Model // with the window that was learnt
	history *session.History
	purpose session.Purpose
	place   session.Resolution
	counted func() *counts // counts at the first call, in whichever goroutine that is
	shown   projection
	made    []session.Condensation // of what goes upstream
	relief  relief
	waits   waits
	hidden  hidden
	records
}

// log is where turns are logged.
type log struct {
	registry *session.Registry
	store    session.Store
}

// records are what a turn writes to the store.
type records struct {
	logged *logging
	held   *held          // its prompt, where that may have to be kept in a cache
	entry  *session.Entry // what is alike in all entries of the turn; nil: its tenant has no holdout

	repeats func() repeated // what of the new calls was made most often before; read at the first call. Nil: it is not looked for
}

// meter counts a request's tokens.
type meter struct {
	Counter
	source source // of the counts, which names what corrects them

	cachedBy uint64 // identifies upstream, key, model, tools and system prompt; valid in this process only
}

// waits is a turn's share in a flight.
type waits struct {
	flight *flight       // that works on this copy of a turn; nil outside
	soFar  time.Duration // that the request has waited for condensations
	later  condense.Job  // a summary of what was condensed without one
}

// Begin finds the thread that a request continues, and projects its view.
func (e *Engine) Begin(ctx context.Context, in Input) (*Turn, error) {
	if in.Tenant.Off {
		in.Wish = WishOff
	}
	t := &Turn{in: in, engine: e, model: in.Model}
	if err := t.resolve(ctx); err != nil {
		return nil, err
	}
	t.prepareCounting()
	if t.remote() {
		t.in.Tenant = t.in.Tenant.passive()
		t.show(t.project(nil))
		return t, nil
	}
	t.obeyCommand()
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Store)
	defer cancel()
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil {
		return nil, fmt.Errorf("read condensations: %w", err)
	}
	if err := t.prepareHidden(ctx); err != nil {
		return nil, err
	}
	if t.purpose == session.PurposeCompaction {
		return t, t.unabridged(applied, func(some []session.Condensation) ([]session.Condensation, error) {
			place := t.place
			place.Thread.Condensations = some
			return t.registry.Condensations(ctx, &place)
		})
	}
	t.show(t.project(applied))
	return t, nil
}

// resolve looks the history up in the log.
func (t *Turn) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	registry, store, secret, err := t.engine.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	t.log = log{registry, store}
	id := t.in.Settings.identify(t.in.Header, t.in.Split.Fields)
	scope := session.Scope{Tenant: t.in.Tenant.Name, Key: id.Key}
	if t.in.Tenant.Anonymous {
		scope.Credential = secret.Credential(t.in.Credential)
	}
	t.in.Split = lasting(t.in.Dialect, t.in.Split)
	t.history = session.NewHistory(secret.Seed(scope), t.in.Split.Messages)
	purpose := t.readPurpose()
	if t.purpose = purpose; t.in.Compacts {
		t.purpose, purpose = session.PurposeCompaction, session.PurposeMain
	}
	if t.in.Asks {
		purpose = session.PurposeCompaction
	}
	query := session.Query{
		Scope: scope, Parent: id.Parent, Request: t.in.Request, Purpose: purpose, Dialect: t.in.Dialect.Name(), History: t.history, Texts: t.texts,
	}
	if t.remote() {
		t.place, err = registry.ResolveKept(ctx, query, t.in.Split.Kept)
	} else {
		t.place, err = registry.Resolve(ctx, query)
	}
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	t.takeSeat(secret)
	return nil
}

// prepareCounting looks up what was learnt of the request's model, and how its tokens are counted. They are counted when
// they are asked for, which for most requests is while the call upstream is under way.
func (t *Turn) prepareCounting() {
	e := t.engine
	t.counter = meter{e.o.Tokens.Counter(t.in.Split.Model), t.source(), t.cachedBy()}
	if w := e.o.Windows; w != nil && !t.model.Configured {
		if told := w.Window(t.in.Upstream.BaseURL, t.in.Split.Model); told > 0 {
			t.model.Window = told
		}
	}
	t.model.Alternates = t.model.Alternates || e.memory.since(e.memory.alternates, t.shared(), e.o.Now())
	t.model.Window = e.memory.window(t.counter.source, t.shared(), t.model.Window, e.o.Now())
	place := t.place
	t.counted = sync.OnceValue(func() *counts { return t.count(&place) })
	if t.in.Tenant.Repeats.Then != "" && t.purpose == session.PurposeMain && !t.place.Again {
		t.repeats = sync.OnceValue(func() repeated { return t.readCalls(&place) })
	}
}

// Place is where the log has the history.
func (t *Turn) Place() *session.Resolution { return &t.place }

// ModelName is the request's model, as the client spells it, bounded.
func (t *Turn) ModelName() string { return head(t.in.Split.Model) }

// Condensed is all that this turn has condensed so far of what goes upstream.
func (t *Turn) Condensed() []session.Condensation {
	if t.unchanged() {
		return nil
	}
	return t.made
}

// Before measures the history as the client sent it, before calibration.
func (t *Turn) Before() session.Size { return t.counted().before }

// Sent measures what goes upstream, before calibration.
func (t *Turn) Sent() session.Size {
	if t.unchanged() {
		return t.Before()
	}
	return t.size()
}

// Known is how many tokens of the request had come before, 0 if none.
func (t *Turn) Known() int {
	c := t.counted()
	if c.tally.From == 0 {
		return 0
	}
	return c.fixed + c.tally.System + c.tally.Total(c.tally.From)
}

// Adjust corrects a count by what upstream has reported of the client's requests for the model.
func (t *Turn) Adjust(n int) int { return t.engine.o.Tokens.Adjust(t.corrector(t.shown.attached), n) }

// LimitTo has the history condensed above so many tokens, unless its session is one that others are compared with.
func (t *Turn) LimitTo(tokens int) {
	heldOut := t.entry != nil && t.entry.Seat.Arm == session.HeldOut
	if !heldOut && (t.in.Limit == 0 || tokens < t.in.Limit) {
		t.in.Limit = tokens
	}
}

// MostOutput is how many tokens the answer may have: what the client allows, but no more than the model gives, or has room for where that
// is not known. 0: not known.
func (t *Turn) MostOutput() int {
	most := cmp.Or(t.model.MaxOutput, t.model.Window)
	switch asked := t.in.Split.MaxOutput; {
	case asked <= 0:
		return t.model.MaxOutput
	case most > 0:
		return min(asked, most)
	default:
		return asked
	}
}
