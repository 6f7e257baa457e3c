package engine

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Warm configures how a tenant's prompts are kept in their providers' caches while clients pause: a request for one token refreshes, or
// touches, the cache.
type Warm struct {
	Model  condense.Summariser // makes the calls
	Prices func(model string) *condense.Economics
	USD    float64                   // budget per UTC day, for all replicas together
	Told   func(outcome WarmOutcome) // called for each touch; may be nil
}

// WarmOutcome is the outcome of a touch.
type WarmOutcome string

// Outcomes of touches.
const (
	WarmKept   WarmOutcome = "kept"   // the cache had the prompt, and keeps it for another lifetime
	WarmCold   WarmOutcome = "cold"   // the cache had lost the prompt
	WarmFailed WarmOutcome = "failed" // upstream did not answer
	WarmSpent  WarmOutcome = "spent"  // not made, because the day's budget is spent
)

// Limits on held prompts, which include the credentials they are sent with.
const (
	minWarmTokens = 16_000 // a shorter prompt is not worth it
	maxHeld       = 1024   // prompts
	maxHeldBytes  = 128 << 20
	maxHeldTime   = 2 * time.Hour
	touchAt       = 0.9 // of the cache's lifetime
)

// heldPrompt is a prompt that its client may come back to.
type heldPrompt struct {
	tenant  *Tenant
	request condense.Request
	thread  session.Thread // as the request left it
	turn    *Turn          // what is needed of it for bills and budgets, without the request
	read    time.Time      // when upstream last read it
	life    time.Duration  // of the cache
	price   float64        // of a touch, in USD
	worth   float64        // what the client's return saves if the cache is warm, in touches
	touches int            // made so far
	timer   *time.Timer
}

// warmer holds prompts and touches them in time. It belongs to an engine.
type warmer struct {
	engine *Engine
	mu     sync.Mutex
	held   map[session.ThreadID]*heldPrompt
	bytes  int                         // of held bodies
	pauses map[string]*condense.Pauses // by tenant
	work   sync.WaitGroup
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelFunc
}

func newWarmer(e *Engine) *warmer {
	w := &warmer{engine: e, held: map[session.ThreadID]*heldPrompt{}, pauses: map[string]*condense.Pauses{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// clear drops all held prompts.
func (w *warmer) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.held {
		w.drop(id)
	}
}

// close drops all held prompts, accepts no more, and cancels running touches.
func (w *warmer) close() {
	w.cancel()
	w.clear() // after this, begin and hold see that ctx has ended
	w.work.Wait()
}

// drop drops the prompt of a thread, if one is held. The caller holds w.mu.
func (w *warmer) drop(id session.ThreadID) {
	if h := w.held[id]; h != nil {
		h.timer.Stop()
		w.bytes -= len(h.request.Body)
		delete(w.held, id)
	}
}

// resumed records that a client is back. If it has edited a history, it has left the other versions of it. A history without an answer
// has edited none: it may be a sub-agent's, linked to its parent's.
func (w *warmer) resumed(p *session.Resolution, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to := &p.Thread
	for id, h := range w.held {
		forked := p.Match == session.MatchInside && h.thread.Parent == to.Parent && h.thread.ForkAt == to.ForkAt
		if id == to.ID || answered && p.New && (id == to.Parent || id == to.Follows || forked) {
			w.pauses[h.tenant.Name].End(h.touches)
			w.drop(id)
		}
	}
}

// hold schedules a prompt to be touched before it leaves the cache. It does nothing if the limits are reached, the prompt has left the
// cache already, no touch could pay, or the settings of its request are no longer in force.
func (w *warmer) hold(h *heldPrompt, s *Settings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(h.thread.ID)
	full := len(w.held) == maxHeld || w.bytes+len(h.request.Body) > maxHeldBytes
	idle := w.engine.o.Now().Sub(h.read)
	if full || idle >= h.life || h.interval() > maxHeldTime || h.worth < 1 || s != w.engine.settings.Load() || w.ctx.Err() != nil {
		return
	}
	if w.pauses[h.tenant.Name] == nil {
		w.pauses[h.tenant.Name] = &condense.Pauses{}
	}
	w.held[h.thread.ID] = h
	w.bytes += len(h.request.Body)
	h.timer = time.AfterFunc(h.interval()-idle, func() { w.touchIfWorth(h) })
}

// interval is the time between two touches.
func (h *heldPrompt) interval() time.Duration { return time.Duration(touchAt * float64(h.life)) }

// begin reports whether to touch a prompt: it may be held that long, and the touch is expected to save more than it costs. If so, the
// caller must call w.work.Done when it is done.
func (w *warmer) begin(h *heldPrompt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[h.thread.ID] != h || w.ctx.Err() != nil {
		return false
	}
	if time.Duration(h.touches+1)*h.interval() > maxHeldTime || !w.pauses[h.tenant.Name].Pays(h.touches, h.worth) {
		w.drop(h.thread.ID)
		return false
	}
	w.work.Add(1)
	return true
}

// touchIfWorth touches a prompt if that pays, and schedules the next touch.
func (w *warmer) touchIfWorth(h *heldPrompt) {
	if !w.begin(h) {
		return
	}
	defer w.work.Done()
	begun := w.engine.o.Now()
	outcome := w.touch(h)
	if told := h.tenant.Warm.Told; told != nil && outcome != "" {
		told(outcome)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if outcome == WarmKept || outcome == WarmCold {
		w.pauses[h.tenant.Name].Touched(h.touches)
		h.touches++
	}
	switch {
	case w.held[h.thread.ID] != h:
	case outcome == WarmKept:
		h.timer.Reset(h.interval() - w.engine.o.Now().Sub(begun))
	default:
		w.drop(h.thread.ID)
	}
}

// touch asks upstream for one token after a prompt. It returns an empty outcome if the thread has gone on, or another replica touches it.
func (w *warmer) touch(h *heldPrompt) WarmOutcome {
	ctx, cancel := context.WithTimeout(h.turn.billed(w.ctx), time.Minute)
	defer cancel()
	if !w.isNewest(ctx, h) {
		return ""
	}
	now, price := w.engine.o.Now(), int64(math.Ceil(h.price*1e6))
	day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	expires := h.thread.Seen.Add(time.Duration(h.touches+1) * h.life) // the account admits one touch until then
	charges := append([]session.Charge{
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/" + string(h.thread.ID), Until: expires}, Limit: 1, Amount: 1},
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/usd", Until: day}, Limit: int64(h.tenant.Warm.USD * 1e6), Amount: price},
	}, h.turn.in.Budgets(h.thread.Session, h.request.Model)...)
	id := "warm/" + string(h.thread.ID) + strconv.FormatInt(expires.UnixNano(), 36) + strconv.FormatInt(now.UnixNano(), 36)
	got, err := w.engine.Reserve(ctx, id, charges)
	switch {
	case err != nil, got.Full && charges[0].Full(got.Balances[0]):
		return ""
	case got.Full:
		return WarmSpent
	}
	billed, spent := withCost(ctx)
	reply, err := h.tenant.Warm.Model.Summarise(billed, h.request)
	charges[0].Amount, charges[1].Amount = 0, 0 // are charged already
	if cost := spent(); cost.Calls > 0 && cost.Unpriced == "" {
		charges[1].Amount = cost.Nano/1e3 - price
	}
	_ = w.engine.Settle(context.WithoutCancel(ctx), id, charges) // if it fails, the expected price stays charged
	switch {
	case err != nil:
		return WarmFailed
	case reply.Usage.Cached < minWarmTokens/2:
		return WarmCold
	}
	return WarmKept
}

// isNewest reports whether the thread has had no request since. It returns false if the store cannot be read.
func (w *warmer) isNewest(ctx context.Context, h *heldPrompt) (newest bool) {
	_ = w.engine.withStore(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error {
		now, err := s.Thread(ctx, h.thread.ID)
		newest = err == nil && now.Seen.Equal(h.thread.Seen)
		return nil
	})
	return newest
}

// notePrompt keeps a copy of the prompt as it goes upstream, if it may have to be kept warm.
func (t *Turn) notePrompt() {
	if t.in.Tenant.Warm == nil || t.in.Tenant.Passes() || t.purpose != session.PurposeMain || t.remote() {
		return
	}
	t.engine.warm.resumed(&t.place, slices.ContainsFunc(t.history.Messages, func(m session.Message) bool { return m.Kind.ByModel() }))
	if t.size().Tokens < minWarmTokens {
		return
	}
	if body := t.in.Dialect.Touch(slices.Concat(t.Forwarded()...)); body != nil {
		t.prompt = &heldPrompt{
			tenant: t.in.Tenant, read: t.engine.o.Now(), life: t.in.Dialect.CacheTTL(t.in.Split.Body),
			request: condense.Request{Endpoint: t.in.Upstream, Model: t.in.Split.Model, Body: body, MaxOutput: 1},
		}
	}
}

// KeepWarm keeps the request's prompt in its provider's cache until the client comes back, if that is configured and pays. Call it once
// upstream has answered, with the usage that it reported.
func (t *Turn) KeepWarm(u session.Usage) {
	h, r := t.prompt, &t.relief
	changedSince := r.tries > 0 || r.alternates || r.verbatim || r.refused || r.strippedTo > 0 // since notePrompt
	if h == nil || changedSince || u.Cached+u.Written < minWarmTokens || !t.logged.finished() {
		return
	}
	e := h.tenant.Warm.Prices(t.in.Split.Model)
	h.thread = t.logged.place.Thread
	if e == nil || e.Read <= 0 || e.Life <= 0 || h.thread.ID == "" {
		return
	}
	if !e.Asked || h.life <= 0 {
		h.life = e.Life
	}
	h.turn = &Turn{engine: t.engine, sessionLog: t.sessionLog, records: records{entry: t.entry}}
	h.turn.in.Spent, h.turn.in.Budgets, h.turn.place.Thread = t.in.Spent, t.in.Budgets, h.thread
	h.price = (e.Read*float64(u.Input) + e.Answer) / 1e6
	h.worth = e.Worth(u.Input)
	t.engine.warm.hold(h, t.in.Settings)
}
