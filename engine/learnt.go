package engine

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lesson"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory is what an engine remembers about upstreams and threads. It is bounded, since clients choose model names and begin threads.
// Anything forgotten is learnt again.
type memory struct {
	windows *lesson.Book[int] // in tokens, shown by upstream's errors, or by cut prompts
	quirks  quirks
	refused lru.Cache[source, refusal] // of changed requests, by thread and model

	verbatim lru.Cache[session.ThreadID, int] // position of the last answer to a request forwarded unchanged
	stripTo  lru.Cache[session.ThreadID, int] // last position whose sealed reasoning is bound to a history no longer shown

	answers lru.Cache[session.Hash, []byte] // that upstream keeps and the log does not have
	items   lru.Cache[session.Hash, []byte] // of answers, which upstream keeps

	usages   lru.Cache[session.ThreadID, usage]
	doubted  lru.Cache[source, struct{}]                         // sources for which a Misreport was returned
	begun    lru.Cache[session.SessionID, *atomic.Bool]          // sessions that began here, and whether a holdout has counted them
	created  lru.Cache[session.SessionID, time.Time]             // when the sessions of holdouts began
	supposed lru.Cache[session.ThreadID, []session.Condensation] // that threads of observing tenants would have
}

// boundOf returns which of a thread's answers are bound to a history that is no longer shown.
func (m *memory) boundOf(thread session.ThreadID) (b bound) {
	b.verbatim, _ = m.verbatim.Get(thread)
	b.stripTo, _ = m.stripTo.Get(thread)
	return b
}

// Sizes of caches, in entries.
const (
	learntKept = 4096
	usagesKept = 1 << 14
)

func newMemory() *memory {
	return &memory{
		windows:  lesson.New(learntKept, lesson.Terms[int]{Own: learntOwn, Shared: learntShared, Same: sameWindow}),
		quirks:   newQuirks(),
		refused:  lru.New[source, refusal](learntKept),
		verbatim: lru.New[session.ThreadID, int](learntKept),
		stripTo:  lru.New[session.ThreadID, int](learntKept),
		answers:  lru.New[session.Hash, []byte](answersKept),
		items:    lru.New[session.Hash, []byte](itemsKept),
		usages:   lru.New[session.ThreadID, usage](usagesKept),
		doubted:  lru.New[source, struct{}](learntKept),
		begun:    lru.New[session.SessionID, *atomic.Bool](usagesKept),
		created:  lru.New[session.SessionID, time.Time](usagesKept),
		supposed: lru.New[session.ThreadID, []session.Condensation](learntKept),
	}
}

// source identifies requests with comparable counts and windows: those of one tenant, or of one of its clients, to one model of one
// upstream.
type source = lesson.Source

// How long lessons hold, unless a constant beside their use says so.
const (
	learntMin    = 512              // tokens; no model has a smaller window
	learntOwn    = 10 * time.Minute // a window, for the client that met it
	learntShared = 6 * time.Hour    // a confirmed lesson, for all clients of a tenant
	learntSame   = 10               // windows that differ by less than one tenth are the same
)

// sameWindow is lesson.Terms.Same for windows: the smaller of two that are about the same.
func sameWindow(a, b int) (int, bool) { return min(a, b), max(a, b)-min(a, b) <= max(a, b)/learntSame }

// window returns the smallest of a model's known window and those learnt. 0: none is known.
func (m *memory) window(place lesson.Place, known int, now time.Time) int {
	smallest := func(window int, valid bool) {
		if valid && (known == 0 || window < known) {
			known = window
		}
	}
	smallest(m.windows.Own(place, now))
	smallest(m.windows.Shared(place, now))
	return known
}

// quirkKind is something that upstream refuses, or fails on.
type quirkKind int

const (
	alternatesOnly   quirkKind = iota // roles must alternate
	refusesTools                      // hidden tools are refused
	failsUnchanged                    // an unchanged request failed after a changed one
	refusesSummaries                  // a thread's request was too long in spite of summaries that were paid for
	quirkKinds
)

// quirks are the lessons of each kind.
type quirks [quirkKinds]*lesson.Book[struct{}]

func newQuirks() (q quirks) {
	for kind, holds := range [quirkKinds]time.Duration{
		alternatesOnly: learntShared, refusesTools: learntShared, failsUnchanged: FailureKept, refusesSummaries: RefusalKept,
	} {
		q[kind] = lesson.New(learntKept, lesson.Terms[struct{}]{Own: holds, Shared: learntShared, Same: lesson.Equal[struct{}]})
	}
	return q
}

// noteQuirk remembers that upstream has just shown a quirk.
func (t *Turn) noteQuirk(kind quirkKind, place lesson.Place) {
	t.engine.memory.quirks[kind].Learn(place, struct{}{}, t.engine.o.Now())
}

// hasQuirk reports whether upstream has shown a quirk.
func (t *Turn) hasQuirk(kind quirkKind, place lesson.Place) bool {
	_, has := t.engine.memory.quirks[kind].Known(place, t.engine.o.Now())
	return has
}

// rememberWindow remembers a window for later turns, unless the model's window is configured.
func (t *Turn) rememberWindow(window int, report *Report) {
	if t.model.Configured || window < learntMin {
		return
	}
	t.engine.memory.windows.Learn(t.lessons(), window, t.engine.o.Now())
	report.Window = window
}

// lessons is the place for what the client is shown of this model, and then all of the tenant's clients.
func (t *Turn) lessons() lesson.Place {
	return lesson.Place{Own: t.counter.source, All: t.sourceOf("all"), Keys: t.in.Keys}
}

func (t *Turn) sourceOf(client string) source {
	return lesson.SourceOf(t.in.Tenant.Name, client, t.in.Upstream.BaseURL, clip(t.in.Split.Model))
}

// usage is what upstream has counted for a thread's requests. It is used to judge later counts.
type usage struct {
	counted, actual int    // our count and upstream's, of the newest request for which upstream's was believed
	last            int    // our count of the newest request
	cached          int    // tokens at the start of the newest request that are now in upstream's cache, as reported
	cachedBy        uint64 // meter.cacheKey of that request
	plateau         plateau
}

// next returns the usage after a request that we counted as counted and upstream as actual, and whether actual is believed: it must grow
// with the history, at least half as fast as ours. A count that does not may leave out what was cut off (Ollama), what came from a
// cache, or a kind of content that upstream never counts (reasoning).
func (u usage) next(counted, actual int) (next usage, believed bool) {
	next = usage{counted: counted, actual: actual, last: counted, cached: u.cached, cachedBy: u.cachedBy}
	believed = actual >= counted/2
	if counted > u.last && u.last > 0 {
		believed = believed && actual-u.actual >= (counted-u.counted)/2
		// A cut prompt is as long as the window each time. What a cache leaves uncounted is as long as the new part.
		if !believed && actual < counted*3/4 && actual > (counted-u.last)*3/2 {
			next.plateau = u.plateau.next(countPair{counted, actual})
		}
	}
	if !believed {
		next.counted, next.actual = u.counted, u.actual
	}
	return next, believed
}

// plateau is a series of requests for which upstream's count stayed the same while the history grew far beyond it.
type plateau struct {
	requests     int
	first, least countPair // of the first request, and of the newest with the lowest count by upstream
	most         int       // highest count by upstream
	cut          bool      // the series shows that upstream cuts prompts
}

type countPair struct{ ours, theirs int }

// flat reports whether upstream's count has grown by at most a tenth as much as ours.
func (p countPair) flat(since countPair) bool { return p.theirs-since.theirs <= (p.ours-since.ours)/10 }

// minPlateau is how many requests show that upstream cuts prompts.
const minPlateau = 3

// next returns the series with a further request. A count that grows with ours begins another series. A count that is higher than all
// before, or lower, or grows after a fall, proves nothing: a prompt that is not cut grows, unless something is left out of it.
func (s plateau) next(p countPair) plateau {
	if s.requests == 0 || !p.flat(s.first) || p.theirs < s.most*7/10 {
		return plateau{requests: 1, first: p, least: p, most: p.theirs}
	}
	s.requests++
	if p.theirs < s.least.theirs {
		s.least = p
	} else if s.requests >= minPlateau && p.ours-s.first.ours >= p.theirs/10 && p.theirs <= s.most && p.flat(s.least) {
		s.cut = true
	}
	s.most = max(s.most, p.theirs)
	return s
}

// Misreport is a count by upstream that is not believed.
type Misreport struct {
	Ours, Theirs int
	Cut          bool // upstream silently cuts prompts to its window
}

// Used records the usage that upstream reported for a request that Sent counted as ours. It calibrates later counts. It also asks the
// server for its window, now that it is known to serve the model. The body may have been released.
func (f *Form) Used(ours int, u session.Usage) (report Report) {
	if !f.turn.Recognised() {
		return report
	}
	if w := f.turn.engine.o.Windows; w != nil && !f.turn.model.Configured {
		w.Ask(f.turn.in.Tenant.Name, f.turn.in.Upstream.BaseURL, f.turn.in.Upstream.APIKey, f.turn.in.Split.Model)
	}
	actual, thread := u.Input, f.place.Thread.ID
	if actual <= 0 || f.turn.remote() { // a remote history is counted by upstream only
		return report
	}
	last, _ := f.turn.engine.memory.usages.Get(thread)
	last.cached, last.cachedBy = max(u.Cached, 0)+max(u.Written, 0), f.turn.counter.cacheKey
	next, believed := last.next(ours, actual)
	if f.shown.attached { // our count is an estimate, by which upstream's cannot be judged
		next, believed = last, true
	}
	f.turn.engine.memory.usages.Add(thread, next)
	if believed {
		f.turn.engine.o.Tokens.Observe(f.turn.calibration(f.shown.attached), ours, actual, f.shown.attached)
		return report
	}
	report.Doubted = true
	cut := next.plateau.cut && !last.plateau.cut
	if cut {
		f.turn.rememberWindow(next.plateau.most, &report)
	}
	if cut || actual < ours/2 { // report it once for each model of an upstream
		if reported, _ := f.turn.engine.memory.doubted.ContainsOrAdd(f.turn.sourceOf(fmt.Sprint("cut ", cut)), struct{}{}); !reported {
			report.Misreport = &Misreport{Ours: ours, Theirs: actual, Cut: cut}
		}
	}
	return report
}
