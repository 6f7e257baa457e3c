package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
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
	Plug    bool // a gateway asks, which sends the request itself: only its messages can be changed, and its answer is not seen
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
	Keys       []string                 // the keys in Credential
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

// Turn is a request as the engine recognised it. Nothing changes it after Begin. It may be used concurrently.
type Turn struct {
	in     Input // with the tenant and the wish that are in force
	engine *Engine
	sessionLog
	counter      meter
	calibrations calibrations
	model        Model         // with the window that earlier requests have shown
	lessons      lessons.Place // for what the client is shown of the model
	history      *session.History
	purpose      session.Purpose
	compactor    agents.Compactor
	place        session.Resolution // in the log, when it was recognised
	counted      func() *counts     // counts on the first call, in the goroutine that makes it
	hidden       hidden
	kept         kept
	unrecognised bool           // see Pass
	byAuthor     bool           // signatures of the history's sealed reasoning prove who wrote it and not what stood before it
	neverUnbinds bool           // upstream refuses to be asked to drop reasoning that is bound to another history
	entry        *session.Entry // the fields that all holdout entries of the turn share; nil: the tenant has no holdout
}

// sessionLog is the log that a turn reads and writes.
type sessionLog struct {
	registry *session.Registry
	store    session.Store
}

// meter counts a request's tokens.
type meter struct {
	Counter
	prompt   Prompt
	cacheKey uint64 // identifies upstream, key, model, tools and system prompt; valid only in this process
}

// Begin finds the thread that a request continues, and returns the form with which it starts: its view under the condensations of the thread.
func (e *Engine) Begin(ctx context.Context, in Input) (*Form, error) {
	if in.Tenant.Off {
		in.Wish = WishOff
	}
	t := &Turn{in: in, engine: e, model: in.Model}
	if err := t.resolve(ctx); err != nil {
		return nil, err
	}
	t.prepareCounting()
	if t.remote() {
		return t.beginKept(ctx), nil
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
		return t.unabridged(applied, func(some []session.Condensation) ([]session.Condensation, error) {
			place := t.place
			place.Thread.Condensations = some
			return t.registry.Condensations(ctx, &place)
		})
	}
	f := t.form(applied)
	if f.countsUnknown() {
		t.resolveLogged(ctx, &t.place)
	}
	return f, nil
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
	t.purpose, t.compactor = t.readPurpose()
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
	t.assign(secret)
	return nil
}

// Step returns which of the model's answers in its history the request is for, beginning with 1. It is 0 if upstream keeps a history of which
// not all is known.
func (t *Turn) Step() int {
	if t.unknown() {
		return 0
	}
	step, answered := 1, false
	for i := 1; i <= t.history.Len(); i++ {
		byModel := t.history.Message(i).Kind.ByModel()
		if byModel && !answered {
			step++
		}
		answered = byModel
	}
	return step
}

// prepareCounting looks up what was learnt about the request's model, and how its tokens are counted. Counting itself waits until a
// count is needed, which for most requests is during the call upstream.
func (t *Turn) prepareCounting() {
	e := t.engine
	t.lessons = lessons.PlaceOf(t.in.Tenant.Name, t.in.Credential, t.in.Upstream.BaseURL, clip(t.in.Split.Model), t.in.Keys)
	t.calibrations = calibrationsOf(t.lessons.Own)
	prompt, key := t.promptOf()
	t.counter = meter{e.o.Tokens.Counter(t.in.Split.Model), prompt, key}
	if e.o.Windows != nil && !t.model.Configured {
		if served := e.o.Windows.Window(t.in.Upstream.BaseURL, t.in.Split.Model); served > 0 {
			t.model.Window = served
		}
	}
	t.model.Alternates = t.model.Alternates || e.lessons.Has(lessons.AlternatesOnly, t.lessons)
	t.model.Window = e.lessons.Window(t.lessons, t.model.Window)
	if t.history.LastSealed() > 0 {
		t.neverUnbinds = e.lessons.Has(lessons.RefusesUnbinding, t.lessons)
		t.byAuthor = t.neverUnbinds ||
			model.SignatureOf(t.in.Split.Model) == model.SignatureAuthor && !e.lessons.Has(lessons.ChecksPlace, t.lessons)
		t.neverUnbinds = t.neverUnbinds || t.in.Plug // that takes an option and a header
	}
	place := t.place
	t.counted = sync.OnceValue(func() *counts { return t.count(&place) })
}

// Compactor returns the client whose summary of its own history the request asks for. Its name is empty if the request is something else, or
// the client is not known, or the tenant does not condense.
func (t *Turn) Compactor() agents.Compactor {
	if t.in.Tenant.Passes() {
		return agents.Compactor{}
	}
	return t.compactor
}

// ModelName returns the model name that the client sent, cut to a bounded length.
func (t *Turn) ModelName() string { return clip(t.in.Split.Model) }

// Before returns the size of the history as the client sent it, uncalibrated.
func (t *Turn) Before() session.Size { return t.counted().before }

// Known returns how many tokens of the request were sent before, 0 if none.
func (t *Turn) Known() int {
	c := t.counted()
	if c.tally.From == 0 {
		return 0
	}
	return c.fixed + c.tally.System + c.tally.Total(c.tally.From)
}

// NewBlocks returns how many blocks of content the messages have that no earlier request of the thread had, 0 if the protocol's servers do not
// cache up to marks.
func (t *Turn) NewBlocks() int { return t.counted().blocks }

// Choices returns how many answers the client asks for.
func (t *Turn) Choices() int { return max(t.in.Split.Choices, 1) }

// Prompt identifies what precedes the messages.
func (t *Turn) Prompt() Prompt { return t.counter.prompt }
