package app

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// heapShare is the part of a container's memory that Go's heap is told to stay below; the rest is for what Go does not
// count, the pages of the store's file above all.
const heapShare = 0.9

// LimitMemory tells Go how much memory its control group allows, unless GOMEMLIMIT has told it already, and says so in
// the log. It has an effect on the whole process: call it once.
func LimitMemory(cfg *config.Config, log *zap.Logger) { limitMemory(memlimit.FromCgroup, cfg, log) }

func limitMemory(group memlimit.Provider, cfg *config.Config, log *zap.Logger) {
	limit, from := memory(), "GOMEMLIMIT"
	if limit == 0 {
		if os.Getenv("GOMEMLIMIT") == "off" {
			return
		}
		allowed, err := group()
		if err != nil || allowed == 0 || allowed >= math.MaxInt64 {
			return // no limit, or no control groups
		}
		limit, from = int64(allowed), "control group"
		debug.SetMemoryLimit(int64(float64(limit) * heapShare))
	}
	log.Info("memory is limited", zap.String("by", from), zap.Int64("bytes", limit),
		zap.Int64("heap", memory()), zap.Int64("bytes_in_flight", int64(cfg.Limits.InFlight(memory()))))
}

// memory is what Go's heap is to stay below, in bytes; 0: it was not told.
func memory() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

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
		debug.SetGCPercent(percent) // stops the world
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

const (
	// trimStep is how often the process is looked at.
	trimStep = time.Second
	// quietAllocations is how many bytes a quiet process allocates in a step at most, burstAllocations what makes a step part
	// of a burst.
	quietAllocations = 8 << 20
	burstAllocations = 32 << 20
)

// TrimHeap returns memory to the system after a burst of requests, until ctx ends. Go collects by what is allocated: a
// process that has become quiet would keep what it needed at its worst for minutes. What is released later than that,
// Go returns by itself, after the collection that it makes every two minutes. Run it once in a process.
func TrimHeap(ctx context.Context) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var t heapTrimmer
	each := time.NewTicker(trimStep)
	defer each.Stop()
	for {
		metrics.Read(allocated)
		if t.due(allocated[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
		select {
		case <-ctx.Done():
			return
		case <-each.C:
		}
	}
}

// heapTrimmer notices the end of a burst.
type heapTrimmer struct {
	allocated uint64 // ever, at the last step
	burst     bool   // there was one since the heap was trimmed
}

// due reports whether the step that ended was quiet, and followed a burst.
func (t *heapTrimmer) due(allocated uint64) bool {
	step := allocated - t.allocated
	t.allocated = allocated
	if step > quietAllocations || !t.burst {
		t.burst = t.burst || step > burstAllocations
		return false
	}
	t.burst = false
	return true
}
