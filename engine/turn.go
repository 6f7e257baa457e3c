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

// Input is everything a turn knows about its request.
type Input struct {
	Settings *Settings // in force when the request arrived
	Tenant   *Tenant
	Upstream condense.Endpoint // the request's destination, for condensers without a model of their own
	Client
	Wish    Wish
	Dialect dialect.Dialect
	Split   *dialect.Request
	Model   Model // named by Split
	Body    Body  // aliased by Split
	Compaction

	// Condensing is called when a condensation begins. The returned context is used for the calls that the condensation makes. The
	// returned function is called at the end, with the condensations made. Condensing may be nil.
	Condensing func(context.Context, condense.Need) (context.Context, func([]session.Condensation))

	// Spent is called for each model call made to condense a session, whether or not it succeeds. It may be nil.
	Spent func(session.SessionID, limit.Call)

	// Budgets returns a charge of nothing to each budget that a session's requests to a model spend. Once one is spent, no model is called to
	// condense. It may be nil.
	Budgets func(id session.SessionID, model string) []session.Charge

	items map[string][]byte // that messages refer to, by id; the turn sets it

	// Late receives the report of a condensation that the request did not wait for, in a separate goroutine. It may be nil.
	Late func(Report)
}

// Compaction is a request for condensing that the client made in terms of its protocol.
type Compaction struct {
	Compacts bool   // the client wants a record of the whole history, from the proxy or from upstream
	Asks     bool   // the last message asks for it, and is not part of the history
	Limit    int    // tokens above which the client wants the history condensed; 0: none
	Told     string // the client's instructions for the record
}

// Client identifies the sender of a request.
type Client struct {
	Credential string
	Header     func(name string) string // reads a request header; called only by Begin
	Request    string                   // request id; may be empty
}

// Wish is what the client wants done about condensing.
type Wish string

// Wishes of clients.
const (
	WishNone Wish = ""
	WishNow  Wish = "now" // condense, whether it is due or not
	WishOff  Wish = "off" // forward unchanged
)

// Body is the buffer that holds a request's body. It is reused once every holder has released it. The request itself holds it until
// its answer begins; work that goes on after that takes a hold of its own.
type Body interface {
	Hold()
	Release()
}

// Turn takes one request through the engine: recognise, project, condense, forward, log. It must be used by one goroutine at a time,
// except for the functions that Log and Answered return.
type Turn struct {
	in     Input
	engine *Engine
	sessionLog
	counter meter
	model   Model // with the learnt window
	history *session.History
	purpose session.Purpose
	place   session.Resolution
	counted func() *counts // counts on the first call, in the goroutine that makes it
	shown   projection
	made    []session.Condensation // part of what goes upstream
	relief  relief
	wait    waitState
	hidden  hidden
	records
}

// sessionLog is the log that a turn reads and writes.
type sessionLog struct {
	registry *session.Registry
	store    session.Store
}

// records are what a turn writes to the store.
type records struct {
	logged *logWrite
	entry  *session.Entry // the fields that all holdout entries of the turn share; nil: the tenant has no holdout
}

// meter counts a request's tokens.
type meter struct {
	Counter
	source source // the client's requests to this model: what upstream reports to one client corrects no other client's counts

	cacheKey uint64 // identifies upstream, key, model, tools and system prompt; valid only in this process
}

// waitState is how a turn waits for condensations.
type waitState struct {
	flight *flight       // the flight that works on this copy of the turn; nil for the request's own turn
	soFar  time.Duration // time the request has already waited
	later  condense.Job  // writes the summary for excerpts that stand in for it; nil: none
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
	if t.purpose != session.PurposeCompaction {
		t.show(t.project(applied))
		if t.countsUnknown() {
			t.resolveLogged(ctx)
		}
		return t, nil
	}
	readable := func(some []session.Condensation) ([]session.Condensation, error) {
		place := t.place
		place.Thread.Condensations = some
		return t.registry.Condensations(ctx, &place)
	}
	return t, t.showUnabridged(applied, readable)
}

// resolve finds the history's place in the log.
func (t *Turn) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	registry, store, secret, err := t.engine.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	t.sessionLog = sessionLog{registry, store}
	key, parent := t.in.Settings.identify(t.in.Header, t.in.Split.Fields)
	scope := session.Scope{Tenant: t.in.Tenant.Name, Key: key}
	if t.in.Tenant.Anonymous {
		scope.Credential = secret.Credential(t.in.Credential)
	}
	t.in.Split = markTransient(t.in.Dialect, t.in.Split)
	t.in.Split = markResults(t.in.Split, session.SystemResults(t.in.Split.Messages))
	seed := secret.Seed(scope)
	t.recallItems(seed)
	t.history = session.NewHistory(seed, t.in.Split.Messages)
	query := session.Query{
		Scope: scope, Parent: parent, Request: t.in.Request, Dialect: t.in.Dialect.Name(), History: t.history, Texts: t.texts,
	}
	t.purpose = t.readPurpose()
	query.Purpose = t.purpose
	if t.in.Compacts { // the history is a main thread, unless its last message is the one that asks
		t.purpose, query.Purpose = session.PurposeCompaction, session.PurposeMain
	}
	if t.in.Asks && !t.remote() {
		query.Purpose = session.PurposeCompaction
	}
	if t.remote() {
		t.place, err = registry.ResolveKept(ctx, query, t.in.Split.Kept)
	} else {
		t.place, err = registry.Resolve(ctx, query)
	}
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	t.resolveNew(ctx)
	t.takeSeat(secret)
	return nil
}

// prepareCounting looks up what was learnt about the request's model, and how its tokens are counted. Counting itself waits until a
// count is needed, which for most requests is during the call upstream.
func (t *Turn) prepareCounting() {
	e := t.engine
	t.counter = meter{e.o.Tokens.Counter(t.in.Split.Model), t.sourceOf("client " + t.in.Credential), t.cacheKey()}
	if e.o.Windows != nil && !t.model.Configured {
		if served := e.o.Windows.Window(t.in.Upstream.BaseURL, t.in.Split.Model); served > 0 {
			t.model.Window = served
		}
	}
	lessons := t.lessons()
	t.model.Alternates = t.model.Alternates || t.hasQuirk(alternatesOnly, lessons)
	t.model.Window = e.memory.window(lessons, t.model.Window, e.o.Now())
	place := t.place
	t.counted = sync.OnceValue(func() *counts { return t.count(&place) })
}

// NeedsText reports whether Answered reads the request's text: if upstream keeps the history, the log is written only then.
func (t *Turn) NeedsText() bool { return t.remote() }

// WithoutText returns a copy of the turn for use once its answer has begun. It refers to none of the request's bytes, so that they can be
// freed while a slow client reads. Answered, Used, Save, Compare and the methods that report what was done work on the copy;
// it can no longer be forwarded, condensed or relieved.
func (t *Turn) WithoutText() *Turn {
	bare, counted := *t, *t.counted()
	counted.tally.Count = nil
	bare.counted = func() *counts { return &counted }
	bare.in.Body, bare.in.Header = nil, nil
	split := t.in.Split
	bare.in.Split = &dialect.Request{
		Model: split.Model, MaxOutput: split.MaxOutput, Choices: split.Choices, Kept: split.Kept, Stores: split.Stores,
	}
	bare.history = t.history.WithoutMessages()
	bare.place = t.place.WithoutText()
	bare.show(projection{attached: t.shown.attached})
	bare.relief.withheld, bare.relief.beforeTrial, bare.relief.trial = nil, projection{}, nil
	bare.wait.later, bare.hidden = nil, hidden{}
	return &bare
}

// Place returns the history's place in the log.
func (t *Turn) Place() *session.Resolution { return &t.place }

// ModelName returns the model name that the client sent, cut to a bounded length.
func (t *Turn) ModelName() string { return clip(t.in.Split.Model) }

// Condensed returns the condensations that this turn has made and that are part of what goes upstream.
func (t *Turn) Condensed() []session.Condensation {
	if t.verbatim() {
		return nil
	}
	return t.made
}

// Before returns the size of the history as the client sent it, uncalibrated.
func (t *Turn) Before() session.Size { return t.counted().before }

// Sent returns the size of what goes upstream, uncalibrated.
func (t *Turn) Sent() session.Size {
	if t.verbatim() {
		return t.Before()
	}
	return t.size()
}

// Known returns how many tokens of the request were sent before, 0 if none.
func (t *Turn) Known() int {
	c := t.counted()
	if c.tally.From == 0 {
		return 0
	}
	return c.fixed + c.tally.System + c.tally.Total(c.tally.From)
}

// Adjust calibrates a count by what upstream has reported for the client's requests to this model.
func (t *Turn) Adjust(n int) int { return t.engine.o.Tokens.Adjust(t.calibration(t.shown.attached), n) }

// LimitTo asks for a condensation above that many tokens, unless the session is held out.
func (t *Turn) LimitTo(tokens int) {
	heldOut := t.entry != nil && t.entry.Seat.Arm == session.HeldOut
	if !heldOut && (t.in.Limit == 0 || tokens < t.in.Limit) {
		t.in.Limit = tokens
	}
}

// Choices returns how many answers the client asks for.
func (t *Turn) Choices() int { return max(t.in.Split.Choices, 1) }

// MaxOutput returns how many tokens the answer may have: the client's limit, capped by the model's output limit or, where that is not
// known, by its window. 0: not known.
func (t *Turn) MaxOutput() int {
	asked := t.in.Split.MaxOutput
	if asked <= 0 {
		return t.model.MaxOutput
	}
	return min(asked, cmp.Or(t.model.MaxOutput, t.model.Window, asked))
}
