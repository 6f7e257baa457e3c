package engine

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

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
