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

// Warm is how a tenant's prompts are kept in their providers' caches while their clients pause.
type Warm struct {
	Model  condense.Summariser // makes the calls
	Prices func(model string) *condense.Economics
	USD    float64                   // that may be spent in a day of UTC, by all replicas together
	Told   func(outcome WarmOutcome) // of each touch; nil: no one is
}

// WarmOutcome is what became of a touch.
type WarmOutcome string

// The outcomes of touches.
const (
	WarmKept   WarmOutcome = "kept"   // the cache had the prompt, and keeps it anew
	WarmCold   WarmOutcome = "cold"   // it had not
	WarmFailed WarmOutcome = "failed" // upstream did not answer
	WarmSpent  WarmOutcome = "spent"  // not made: the day's budget is spent
)

// Bounds of what is held to be touched, with the credentials that it goes upstream with.
const (
	leastWarm   = 16_000 // tokens of a prompt that is worth it
	mostHeld    = 1024   // prompts
	mostWarm    = 128 << 20
	longestHeld = 2 * time.Hour
	touchShare  = 0.9 // of a cache's life after which a prompt is touched
)

// held is a prompt that its client may come back to.
type held struct {
	tenant  *Tenant
	request condense.Request
	thread  session.Thread // as the request left it
	bill    func(context.Context) context.Context
	life    time.Duration // of the cache
	price   float64       // of a touch, in USD
	worth   float64       // what a return then saves, in touches
	touches int           // made so far
	timer   *time.Timer
}

// warmth is what is held, and what is known of pauses. It belongs to an engine.
type warmth struct {
	engine *Engine
	mu     sync.Mutex
	all    map[session.ThreadID]*held
	bytes  int
	pauses map[string]*condense.Pauses // by tenant
	work   sync.WaitGroup
	ctx    context.Context // ends, under mu, when the engine is closed
	cancel context.CancelFunc
}

func newWarmth(e *Engine) *warmth {
	w := &warmth{engine: e, all: map[session.ThreadID]*held{}, pauses: map[string]*condense.Pauses{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// clear forgets all that is held.
func (w *warmth) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.all {
		w.drop(id)
	}
}

// close is clear for good, and ends the touches under way.
func (w *warmth) close() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.clear()
	w.work.Wait()
}

// drop forgets what is held of a thread. The caller holds w.mu.
func (w *warmth) drop(id session.ThreadID) {
	if h := w.all[id]; h != nil {
		h.timer.Stop()
		w.bytes -= len(h.request.Body)
		delete(w.all, id)
	}
}

// back notes that a thread goes on.
func (w *warmth) back(id session.ThreadID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.all[id]; h != nil {
		w.of(h.tenant.Name).End(h.touches)
		w.drop(id)
	}
}

// of gives a tenant's pauses. The caller holds w.mu.
func (w *warmth) of(tenant string) *condense.Pauses {
	if w.pauses[tenant] == nil {
		w.pauses[tenant] = &condense.Pauses{}
	}
	return w.pauses[tenant]
}

// hold has a prompt touched before it leaves the cache. Where there is no room for it, it is left alone.
func (w *warmth) hold(h *held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(h.thread.ID)
	if w.ctx.Err() != nil || len(w.all) == mostHeld || w.bytes+len(h.request.Body) > mostWarm {
		return
	}
	w.all[h.thread.ID], w.bytes = h, w.bytes+len(h.request.Body)
	h.timer = time.AfterFunc(h.due(), func() { w.wake(h) })
}

func (h *held) due() time.Duration { return time.Duration(touchShare * float64(h.life)) }

// begin reports whether a prompt is to be touched: another touch is expected to save more than it costs, and it may be held for so long.
func (w *warmth) begin(h *held) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[h.thread.ID] != h || w.ctx.Err() != nil {
		return false
	}
	pays := time.Duration(h.touches+1)*h.due() <= longestHeld && w.of(h.tenant.Name).Touch(h.touches, h.worth)
	if pays {
		w.work.Add(1)
	} else {
		w.drop(h.thread.ID)
	}
	return pays
}

// wake touches a prompt if that pays, and goes on to do so while it does.
func (w *warmth) wake(h *held) {
	if !w.begin(h) {
		return
	}
	defer w.work.Done()
	outcome := w.touch(h)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch h.touches++; {
	case w.all[h.thread.ID] != h:
	case outcome == WarmKept:
		h.timer.Reset(h.due())
	default:
		w.drop(h.thread.ID)
	}
}

// touch asks upstream for one token behind a prompt. It gives nothing where the thread has gone on elsewhere, or another replica touches it.
func (w *warmth) touch(h *held) (outcome WarmOutcome) {
	ctx, cancel := context.WithTimeout(h.bill(w.ctx), time.Minute)
	defer cancel()
	defer func() {
		if told := h.tenant.Warm.Told; told != nil && outcome != "" {
			told(outcome)
		}
	}()
	if !w.newest(ctx, h) {
		return ""
	}
	now, price := w.engine.o.Now(), int64(math.Ceil(h.price*1e6))
	day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	once := h.thread.Seen.Add(time.Duration(h.touches+1) * h.life)
	charges := []session.Charge{
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/" + string(h.thread.ID), Until: once}, Limit: 1, Amount: 1},
		{Account: session.Account{Tenant: h.tenant.Name, Name: "warm/usd", Until: day}, Limit: int64(h.tenant.Warm.USD * 1e6), Amount: price},
	}
	id := "warm/" + string(h.thread.ID) + strconv.FormatInt(once.UnixNano(), 36) + strconv.FormatInt(now.UnixNano(), 36)
	got, err := w.engine.Reserve(ctx, id, charges)
	switch {
	case err != nil, got.Full && charges[0].Full(got.Balances[0]):
		return ""
	case got.Full:
		return WarmSpent
	}
	_ = w.engine.Settle(ctx, id, nil) // nothing is held
	reply, err := h.tenant.Warm.Model.Summarise(ctx, h.request)
	switch {
	case err != nil:
		return WarmFailed
	case reply.Usage.Cached < leastWarm/2:
		return WarmCold
	}
	return WarmKept
}

// newest reports whether nothing came of a thread since.
func (w *warmth) newest(ctx context.Context, h *held) (newest bool) {
	_ = w.engine.stored(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error { // it is not, where that cannot be read
		now, err := s.Thread(ctx, h.thread.ID)
		newest = err == nil && now.Seen.Equal(h.thread.Seen)
		return nil
	})
	return newest
}

// noteSent keeps the prompt as it goes upstream, where it may have to be kept warm.
func (t *Turn) noteSent() {
	if t.in.Tenant.Warm == nil || t.purpose != session.PurposeMain || t.remote() {
		return
	}
	t.engine.warm.back(t.place.Thread.ID)
	if t.size().Tokens < leastWarm {
		return
	}
	if body := t.in.Dialect.Touch(slices.Concat(t.Forwarded()...)); body != nil {
		t.held = &held{
			tenant: t.in.Tenant, life: t.in.Dialect.Keeps(t.in.Split.Body),
			request: condense.Request{Endpoint: t.in.Upstream, Model: t.in.Split.Model, Body: body, MaxOutput: 1},
		}
	}
}

// KeepWarm has the request's prompt kept in its provider's cache, as far as that is wanted and pays, until its client comes back. Upstream
// has answered it, and reported that usage.
func (t *Turn) KeepWarm(u session.Usage) {
	h, r := t.held, &t.relief
	changed := r.tries > 0 || r.alternates || r.asItCame || r.refused || r.bared > 0 // since it was noted
	if h == nil || changed || u.Cached+u.Written < leastWarm || !t.logged.over() {
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
	bare := &Turn{engine: t.engine, log: t.log, records: records{entry: t.entry}} // the bill outlives the body
	bare.in.Spent, bare.place.Thread = t.in.Spent, h.thread
	h.bill, h.price, h.worth = bare.billed, (e.Read*float64(u.Input)+e.Answer)/1e6, e.Worth(u.Input)
	t.engine.warm.hold(h)
}
