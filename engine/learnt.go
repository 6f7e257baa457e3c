package engine

import (
	"crypto/sha256"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory is what an engine remembers of upstreams and of threads, bounded, since clients pick models' names and begin threads. What is
// forgotten begins anew.
type memory struct {
	windows    *lru.Cache[source, learntWindow]  // that upstreams showed to have, by their errors or by cutting prompts
	alternates *lru.Cache[source, time.Time]     // when upstream last refused roles that do not
	toolless   *lru.Cache[source, time.Time]     // when it last refused a client tools of the proxy's own
	raw        *lru.Cache[session.ThreadID, int] // the last answer's position that was answered without what was condensed
	lost       *lru.Cache[session.ThreadID, int] // the last position whose sealed reasoning belongs to a history that is not shown any more
	refused    *lru.Cache[source, refusal]       // of what was changed, by thread and model

	ready   *lru.Cache[session.ThreadID, session.CondensationID] // on top of which one another is prepared
	answers *lru.Cache[session.Hash, []byte]                     // that upstream keeps and the log does not have
	calls   *lru.Cache[session.ThreadID, calls]                  // the newest

	usages   *lru.Cache[session.ThreadID, usage]                  // what upstreams counted, to judge what they count next
	doubted  *lru.Cache[source, struct{}]                         // whose counts were told to be doubtful
	begun    *lru.Cache[session.SessionID, struct{}]              // sessions that are in the account of a holdout
	supposed *lru.Cache[session.ThreadID, []session.Condensation] // those that threads of observing tenants would have by now
}

// How much is remembered.
const (
	learntKept  = 4096
	doubtedKept = 1024
	usagesKept  = 1 << 14
)

func newMemory() *memory {
	return &memory{
		windows: cache[source, learntWindow](learntKept), alternates: cache[source, time.Time](learntKept), toolless: cache[source, time.Time](learntKept),
		raw: cache[session.ThreadID, int](learntKept), lost: cache[session.ThreadID, int](learntKept), refused: cache[source, refusal](learntKept),
		ready: cache[session.ThreadID, session.CondensationID](learntKept), answers: cache[session.Hash, []byte](answersKept),
		calls: cache[session.ThreadID, calls](learntKept), usages: cache[session.ThreadID, usage](usagesKept), doubted: cache[source, struct{}](doubtedKept),
		begun: cache[session.SessionID, struct{}](usagesKept), supposed: cache[session.ThreadID, []session.Condensation](learntKept),
	}
}

// cache makes a cache for so many. No size but 0 is refused.
func cache[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return c
}

// purge forgets what was learnt of upstreams, which may have changed.
func (m *memory) purge() {
	m.windows.Purge()
	m.alternates.Purge()
	m.refused.Purge()
	m.toolless.Purge()
}

// source names requests whose counts and windows are comparable: those of a tenant to an upstream for a model, and of one client of
// the tenant's or of all.
type source [sha256.Size]byte

type learntWindow struct {
	tokens int
	at     time.Time
	by     source // the client that met it last
	shared bool   // a second client has confirmed it
}

const (
	learntMin    = 512              // tokens; no model has a smaller window
	learntOwn    = 10 * time.Minute // how long a client is held to what it alone has met
	learntShared = 6 * time.Hour    // how long a tenant's clients are held to what was confirmed
	learntSame   = 10               // windows that differ by less than one tenth are the same
)

// set notes a window that a client has met. Others are held to it once it is confirmed.
func (m *memory) set(own, all source, w learntWindow) {
	w.by = own
	m.windows.Add(own, w)
	last, known := m.windows.Get(all)
	if known && w.at.Sub(last.at) < learntShared {
		more, less := max(last.tokens, w.tokens), min(last.tokens, w.tokens)
		switch {
		case last.by != own && more-less <= more/learntSame:
			w.shared, w.tokens = true, min(w.tokens, last.tokens)
		case last.shared:
			return
		}
	}
	m.windows.Add(all, w)
}

// window is the smallest of what a model is known to have and what was learnt.
func (m *memory) window(own, all source, known int, now time.Time) int {
	least := func(w learntWindow, valid bool, lasts time.Duration) {
		if valid && now.Sub(w.at) < lasts && (known == 0 || w.tokens < known) {
			known = w.tokens
		}
	}
	w, ok := m.windows.Get(own)
	least(w, ok, learntOwn)
	w, ok = m.windows.Get(all)
	least(w, ok && w.shared, learntShared)
	return known
}

// since reports whether something was learnt of a model not long ago.
func (m *memory) since(when *lru.Cache[source, time.Time], all source, now time.Time) bool {
	at, ok := when.Get(all)
	return ok && now.Sub(at) < learntShared
}

// keepWindow remembers a window for turns to come, unless the operator has said what it is.
func (t *Turn) keepWindow(window int, report *Report) {
	if t.model.Configured || window < learntMin {
		return
	}
	t.engine.memory.set(t.counter.source, t.shared(), learntWindow{tokens: window, at: t.engine.o.Now()})
	report.Window = window
}

// source is that of the client's requests like this one. No other client's counts are corrected by them.
func (t *Turn) source() source { return t.sourceOf("client " + t.in.Credential) }

// shared is the source of all the tenant's requests like this one.
func (t *Turn) shared() source { return t.sourceOf("all") }

func (t *Turn) sourceOf(client string) source {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", t.in.Tenant.Name, client, t.in.Upstream.BaseURL, head(t.in.Split.Model)))
}

// usage is what upstream counted of a thread's requests.
type usage struct {
	counted, actual int    // of the newest request whose count was believed: by us, and by upstream
	last            int    // our count of the newest one
	cached          int    // tokens at the beginning of the newest one that upstream reported to have in its cache by now
	cachedBy        uint64 // of the request that reported it
	still           still
}

// next is the usage after a request of which upstream counted actual, and whether that is believed: its count must grow with the
// history, by half as much as ours at least. What it did not count was cut off (Ollama), came from its cache, or is of a kind that it
// never counts (reasoning).
func (u usage) next(counted, actual int) (next usage, believed bool) {
	next = usage{counted: counted, actual: actual, last: counted, cached: u.cached, cachedBy: u.cachedBy}
	believed = actual >= counted/2
	if counted > u.last && u.last > 0 {
		believed = believed && actual-u.actual >= (counted-u.counted)/2
		// What is cut is as long each time, as long as the window; what a cache leaves is as long as what is new.
		if !believed && actual < counted*3/4 && actual > (counted-u.last)*3/2 {
			next.still = u.still.next(pair{counted, actual})
		}
	}
	if !believed {
		next.counted, next.actual = u.counted, u.actual
	}
	return next, believed
}

// still is requests in a row whose count stayed the same while the history grew far beyond it.
type still struct {
	requests     int
	first, least pair // counts of the first one, and of the newest of which upstream counted less than ever
	most         int  // that upstream counted of any
	cut          bool // they show that upstream cuts prompts
}

type pair struct{ ours, theirs int }

// slow reports whether upstream's count grew by no more than a tenth of what ours grew by.
func (p pair) slow(since pair) bool { return p.theirs-since.theirs <= (p.ours-since.ours)/10 }

// stillEnough is how many such requests show that upstream cuts prompts.
const stillEnough = 3

// next is the row with a further request. A count that grows with ours begins another row. One that is higher than all before, or
// lower, or grows after it fell, proves nothing: what is not cut grows, except where something is left out of it.
func (s still) next(p pair) still {
	if s.requests == 0 || !p.slow(s.first) || p.theirs < s.most*7/10 {
		return still{requests: 1, first: p, least: p, most: p.theirs}
	}
	s.requests++
	if p.theirs < s.least.theirs {
		s.least = p
	} else if s.requests >= stillEnough && p.ours-s.first.ours >= p.theirs/10 && p.theirs <= s.most && p.slow(s.least) {
		s.cut = true
	}
	s.most = max(s.most, p.theirs)
	return s
}

// Misreport is a count of upstream's that is not believed.
type Misreport struct {
	Ours, Theirs int
	Cut          bool // upstream cuts prompts to its window and says nothing
}

// Used tells what upstream reported of the answer to what Sent counted as ours: its count corrects ours. A server that answered can be
// asked what it serves. The body may be gone by now.
func (t *Turn) Used(ours int, u session.Usage) (report Report) {
	if w := t.engine.o.Windows; w != nil && !t.model.Configured {
		w.Ask(t.in.Upstream.BaseURL, t.in.Upstream.APIKey, t.in.Split.Model)
	}
	actual, thread := u.Input, t.place.Thread.ID
	if actual <= 0 || t.remote() { // it is of what upstream keeps as well
		return report
	}
	last, _ := t.engine.memory.usages.Get(thread)
	last.cached, last.cachedBy = max(u.Cached, 0)+max(u.Written, 0), t.counter.cachedBy
	if t.shown.attached { // ours is an estimate, which tells nothing of theirs
		t.engine.memory.usages.Add(thread, last)
		t.engine.o.Tokens.Observe(t.corrector(true), ours, actual, true)
		return report
	}
	next, believed := last.next(ours, actual)
	t.engine.memory.usages.Add(thread, next)
	if believed {
		t.engine.o.Tokens.Observe(t.corrector(false), ours, actual, false)
		return report
	}
	report.Doubted = true
	cut := next.still.cut && !last.still.cut
	if cut {
		t.keepWindow(next.still.most, &report)
	}
	if cut || actual < ours/2 { // it is told once for each model of an upstream
		if told, _ := t.engine.memory.doubted.ContainsOrAdd(t.sourceOf(fmt.Sprint("cut ", cut)), struct{}{}); !told {
			report.Misreport = &Misreport{Ours: ours, Theirs: actual, Cut: cut}
		}
	}
	return report
}
