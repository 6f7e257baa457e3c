package engine

import (
	"fmt"
	"math"

	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// usage is what upstream has counted for a thread's requests. It is used to judge later counts.
type usage struct {
	counted, actual int    // our count and upstream's, of the newest request for which upstream's was believed
	last            int    // our count of the newest request
	cached          int    // tokens at the start of the newest request that are now in upstream's cache, as reported
	cachedBy        uint64 // meter.cacheKey of that request
	plateau         plateau
	whole           whole
}

// fading is how many times less a request weighs than the next one in what a history grew by.
const fading = 4

// whole is what upstream would count for a thread's newest request if nothing of it was hidden.
type whole struct {
	model        string
	ours, theirs int       // our count of the request as the client sent it, and upstream's
	gone, hidden int       // the parts of them that were not forwarded
	grown        countPair // by how much both grew, where each request weighs less than the next one: see fading
}

// next returns the size after a request to a model, of which we counted before as the client sent it and after as it was forwarded, and
// upstream actual. What was sent before it was hidden has been counted by upstream. Only what came with a condensation is converted, as
// what came shortly before it was counted: records are another kind of content.
func (w whole) next(model string, before, after, actual int) whole {
	n := whole{model: model, ours: before, gone: before - after, theirs: proportion(before, actual, after)}
	known, counted := w.model == model && w.ours > 0 && before >= w.ours, n.gone == 0
	switch {
	case counted:
		n.theirs = actual
	case known && n.gone == w.gone:
		n.theirs, counted = actual+w.hidden, true
	case known:
		n.theirs = w.theirs + proportion(before-w.ours, w.grown.theirs, w.grown.ours)
	}
	n.hidden, n.grown = n.theirs-actual, countPair{before, n.theirs}
	if known {
		n.grown = w.grown
	}
	if known && counted && before > w.ours {
		n.grown = countPair{w.grown.ours/fading + before - w.ours, max(w.grown.theirs/fading+n.theirs-w.theirs, 0)}
	}
	return n
}

// known returns what upstream would count for the part that earlier requests had, of which we count ours. before is the size after the request
// before this one.
func (w whole) known(before whole, ours int) int {
	if before.model == w.model && before.ours > 0 && ours >= before.ours {
		return min(before.theirs+proportion(ours-before.ours, before.theirs, before.ours), w.theirs)
	}
	return proportion(ours, w.theirs, w.ours)
}

// Whole is what upstream would have counted for a request had nothing been hidden.
type Whole struct {
	Tokens int // 0: not known
	Known  int // the part of them that an earlier request had
}

// proportion returns n times a to b, rounded.
func proportion(n, a, b int) int { return int(math.Round(float64(n) * float64(a) / float64(b))) }

// next returns the usage after a request that we counted as counted and upstream as actual, and whether actual is believed: it must grow
// with the history, at least half as fast as ours. A count that does not may leave out what was cut off (Ollama), what came from a
// cache, or a kind of content that upstream never counts (reasoning).
func (u usage) next(counted, actual int) (next usage, believed bool) {
	next = usage{counted: counted, actual: actual, last: counted, cached: u.cached, cachedBy: u.cachedBy, whole: u.whole}
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
	if w := f.turn.engine.o.Windows; w != nil && !f.turn.model.Configured && !f.turn.in.Plug {
		w.Ask(f.turn.in.Tenant.Name, f.turn.in.Upstream.BaseURL, f.turn.in.Upstream.APIKey, f.turn.in.Split.Model)
	}
	actual, thread := u.Input, f.place.Thread.ID
	if actual <= 0 || f.turn.unknown() || f.turn.remote() && f.verbatim() { // upstream counts what it stores
		return report
	}
	last, _ := f.turn.engine.memory.usages.Get(thread)
	last.cached, last.cachedBy = max(u.Cached, 0)+max(u.Written, 0), f.turn.counter.cacheKey
	next, believed := last.next(ours, actual)
	if f.shown.attached { // our count is an estimate, by which upstream's cannot be judged
		next, believed = last, true
	}
	if believed && ours > 0 {
		next.whole = last.whole.next(clip(f.turn.in.Split.Model), f.turn.counted().before.Tokens, ours, actual)
		report.Whole = Whole{Tokens: next.whole.theirs, Known: next.whole.known(last.whole, f.turn.Known())}
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

// rememberWindow remembers a window for later turns, unless the model's window is configured.
func (t *Turn) rememberWindow(window int, report *Report) {
	if !t.model.Configured && t.engine.lessons.LearnWindow(t.lessons, window) {
		report.Window = window
	}
}

// sourceOf identifies requests of the tenant to the turn's model.
func (t *Turn) sourceOf(requests string) lessons.Source {
	return lessons.SourceOf(t.in.Tenant.Name, requests, t.in.Upstream.BaseURL, clip(t.in.Split.Model))
}
