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
	bill    func(context.Context) context.Context
	life    time.Duration // of the cache
	price   float64       // of a touch, in USD
	worth   float64       // what the client's return saves if the cache is warm, in touches
	touches int           // made so far
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
	ctx    context.Context // ends, under mu, when the engine is closed
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
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.clear()
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

// resumed records that a thread goes on.
func (w *warmer) resumed(id session.ThreadID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.held[id]; h != nil {
		w.pausesOf(h.tenant.Name).End(h.touches)
		w.drop(id)
	}
}

// pausesOf returns the record of a tenant's pauses. The caller holds w.mu.
func (w *warmer) pausesOf(tenant string) *condense.Pauses {
	if w.pauses[tenant] == nil {
		w.pauses[tenant] = &condense.Pauses{}
	}
	return w.pauses[tenant]
}

// hold schedules a prompt to be touched before it leaves the cache. It does nothing if the limits are reached.
func (w *warmer) hold(h *heldPrompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(h.thread.ID)
	if w.ctx.Err() != nil || len(w.held) == maxHeld || w.bytes+len(h.request.Body) > maxHeldBytes {
		return
	}
	w.held[h.thread.ID] = h
	w.bytes += len(h.request.Body)
	h.timer = time.AfterFunc(h.interval(), func() { w.touchIfWorth(h) })
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
	pays := time.Duration(h.touches+1)*h.interval() <= maxHeldTime && w.pausesOf(h.tenant.Name).Touch(h.touches, h.worth)
	if pays {
		w.work.Add(1)
	} else {
		w.drop(h.thread.ID)
	}
	return pays
}

// touchIfWorth touches a prompt if that pays, and schedules the next touch.
func (w *warmer) touchIfWorth(h *heldPrompt) {
	if !w.begin(h) {
		return
	}
	defer w.work.Done()
	outcome := w.touch(h)
	w.mu.Lock()
	defer w.mu.Unlock()
	h.touches++
	switch {
	case w.held[h.thread.ID] != h:
	case outcome == WarmKept:
		h.timer.Reset(h.interval())
	default:
		w.drop(h.thread.ID)
	}
}

// touch asks upstream for one token after a prompt. It returns an empty outcome if the thread has gone on, or another replica touches it.
func (w *warmer) touch(h *heldPrompt) (outcome WarmOutcome) {
	ctx, cancel := context.WithTimeout(h.bill(w.ctx), time.Minute)
	defer cancel()
	defer func() {
		if report := h.tenant.Warm.Told; report != nil && outcome != "" {
			report(outcome)
		}
	}()
	if !w.isNewest(ctx, h) {
		return ""
	}
	now, price := w.engine.o.Now(), int64(math.Ceil(h.price*1e6))
	day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	expires := h.thread.Seen.Add(time.Duration(h.touches+1) * h.life) // the account admits one touch until then
	charges := []session.Charge{
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/" + string(h.thread.ID), Until: expires}, Limit: 1, Amount: 1},
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/usd", Until: day}, Limit: int64(h.tenant.Warm.USD * 1e6), Amount: price},
	}
	id := "warm/" + string(h.thread.ID) + strconv.FormatInt(expires.UnixNano(), 36) + strconv.FormatInt(now.UnixNano(), 36)
	got, err := w.engine.Reserve(ctx, id, charges)
	switch {
	case err != nil, got.Full && charges[0].Full(got.Balances[0]):
		return ""
	case got.Full:
		return WarmSpent
	}
	_ = w.engine.Settle(ctx, id, nil) // end the hold; the charges stay
	reply, err := h.tenant.Warm.Model.Summarise(ctx, h.request)
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
	if t.in.Tenant.Warm == nil || t.purpose != session.PurposeMain || t.remote() {
		return
	}
	t.engine.warm.resumed(t.place.Thread.ID)
	if t.size().Tokens < minWarmTokens {
		return
	}
	if body := t.in.Dialect.Touch(slices.Concat(t.Forwarded()...)); body != nil {
		t.prompt = &heldPrompt{
			tenant: t.in.Tenant, life: t.in.Dialect.CacheTTL(t.in.Split.Body),
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
	// The bill outlives the request's body, so it must not refer to t.
	bare := &Turn{engine: t.engine, sessionLog: t.sessionLog, records: records{entry: t.entry}}
	bare.in.Spent, bare.place.Thread = t.in.Spent, h.thread
	h.bill = bare.billed
	h.price = (e.Read*float64(u.Input) + e.Answer) / 1e6
	h.worth = e.Worth(u.Input)
	t.engine.warm.hold(h)
}
