package soak

import (
	"slices"
	"sync"
	"time"
)

// condition is something that is wrong for a while.
type condition string

// The conditions.
const (
	roughUpstream  condition = "upstream rough"
	roughSummaries condition = "summariser rough"
	over           condition = "over" // nothing is injected any more
)

// Around a time in which the store was not sound.
const (
	storeRecovering = 2 * time.Second
	storeForgetful  = 3 * time.Second // what is that fresh when the store is killed may be lost
)

// weather is what is wrong at a moment, and when the store was not sound. It is safe for concurrent use.
type weather struct {
	mu      sync.Mutex
	now     map[condition]bool
	outages []outage
}

// outage is a time in which writes may have been lost.
type outage struct{ from, to time.Time }

func newWeather() *weather { return &weather{now: map[condition]bool{}} }

func (w *weather) set(c condition, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[c] = is
}

// lost notes a time in which the store may have lost writes, its surroundings included.
func (w *weather) lost(from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, outage{from.Add(-storeForgetful), to.Add(storeRecovering)})
}

// touched reports whether an outage falls into a time.
func (w *weather) touched(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.outages, func(o outage) bool { return from.Before(o.to) && to.After(o.from) })
}

// upstream is the share of exchanges that go wrong, and summariser that of summariser calls.
func (w *weather) upstream() float64   { return w.rate(roughUpstream, 0.01, 0.3) }
func (w *weather) summariser() float64 { return w.rate(roughSummaries, 0.05, 0.7) }

func (w *weather) rate(c condition, calm, rough float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.now[over]:
		return 0
	case w.now[c]:
		return rough
	}
	return calm
}
