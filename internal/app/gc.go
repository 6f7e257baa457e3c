package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	littleGarbage = 64 << 20 // bytes
	longestPace   = 1000     // percent
	usualPace     = 100      // Go's own
)

// PaceGC lets the collector wait until there are 64 MiB of garbage, or a quarter of a memory limit, where Go would begin
// at as much as there is in use: a process that holds 10 MB would collect many times a second. With much in use it is as
// Go has it, and so it stays where GOGC is set.
func PaceGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pacer{garbage: littleGarbage, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	if limit := memory(); limit > 0 {
		p.garbage = min(p.garbage, uint64(limit)/4) //nolint:gosec // a limit is positive
	}
	p.adjust()
}

// pacer sets the collector's pace after each of its cycles.
type pacer struct {
	garbage uint64 // bytes to wait for
	live    []metrics.Sample
	percent int
}

func (p *pacer) adjust() {
	metrics.Read(p.live)
	if percent := pace(p.garbage, p.live[0].Value.Uint64()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.SetFinalizer(&cycle{p}, func(c *cycle) { c.pacer.adjust() })
}

// cycle is garbage: the collector finds it in its next cycle.
type cycle struct{ pacer *pacer }

// pace is how much garbage may grow, in percent of what is live, rounded so that it changes seldom.
func pace(garbage, live uint64) int {
	percent := garbage * 100 / max(live, 1)
	return int(min(max(percent/50*50, usualPace), longestPace)) //nolint:gosec // bounded
}
