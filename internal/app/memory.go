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

// heapShare is the part of a container's memory that becomes Go's memory limit. The rest is for memory that Go does not
// count, mainly the pages of the store's file.
const heapShare = 0.9

// LimitMemory sets Go's memory limit from the control group, unless GOMEMLIMIT is set, and logs it. It affects the whole
// process: call it once.
func LimitMemory(cfg *config.Config, log *zap.Logger) { limitMemory(memlimit.FromCgroup, cfg, log) }

func limitMemory(group memlimit.Provider, cfg *config.Config, log *zap.Logger) {
	limit, from := memoryLimit(), "GOMEMLIMIT"
	if limit == 0 {
		if os.Getenv("GOMEMLIMIT") == "off" {
			return
		}
		allowed, err := group()
		if err != nil || allowed == 0 || allowed >= math.MaxInt64 {
			return // there is no limit, or there are no control groups
		}
		limit, from = int64(allowed), "control group"
		debug.SetMemoryLimit(int64(float64(limit) * heapShare))
	}
	log.Info("memory is limited", zap.String("by", from), zap.Int64("bytes", limit),
		zap.Int64("heap", memoryLimit()), zap.Int64("bytes_in_flight", int64(cfg.Limits.InFlight(memoryLimit()))))
}

// memoryLimit returns Go's memory limit in bytes, or 0 if there is none.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

const (
	minGarbage     = 64 << 20 // bytes
	maxPercent     = 1000
	defaultPercent = 100 // Go's default for GOGC
)

// PaceGC makes the collector wait until there are 64 MiB of garbage, or a quarter of the memory limit if that is less. By
// default it starts when there is as much garbage as live data, many times a second if the live heap is only 10 MB. With a
// large live heap the default stays in effect. PaceGC does nothing if GOGC is set.
func PaceGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pacer{garbage: minGarbage, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	if limit := memoryLimit(); limit > 0 {
		p.garbage = min(p.garbage, uint64(limit)/4) // a limit is positive
	}
	p.adjust()
}

// pacer adjusts the GC percentage after each collection.
type pacer struct {
	garbage uint64 // bytes of garbage at which to collect
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

// cycle is unreachable as soon as it is created, so its finalizer runs in the next GC cycle.
type cycle struct{ pacer *pacer }

// pace returns a GC percentage that collects at the given amount of garbage. It is rounded so that it changes rarely.
func pace(garbage, live uint64) int {
	percent := garbage * 100 / max(live, 1)
	return int(min(max(percent/50*50, defaultPercent), maxPercent)) // bounded
}

const (
	trimInterval        = time.Second
	maxQuietAllocations = 8 << 20  // bytes; a step that allocates more is not quiet
	minBurstAllocations = 32 << 20 // bytes; a step that allocates more is part of a burst
)

// TrimHeap returns memory to the operating system after each burst of requests, until ctx ends. Collections are triggered
// by allocation, so a process that becomes idle would keep the memory of its peak for minutes. Memory that is released
// later is returned by the collection that Go runs every two minutes. Run TrimHeap once per process.
func TrimHeap(ctx context.Context) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var t heapTrimmer
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	for {
		metrics.Read(allocated)
		if t.due(allocated[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// heapTrimmer detects the end of a burst.
type heapTrimmer struct {
	allocated uint64 // bytes allocated since the process started, at the last step
	burst     bool   // a burst has occurred since the last trim
}

// due reports whether the step that just ended was the first quiet one after a burst.
func (t *heapTrimmer) due(allocated uint64) bool {
	step := allocated - t.allocated
	t.allocated = allocated
	if step > minBurstAllocations {
		t.burst = true
	}
	if step > maxQuietAllocations || !t.burst {
		return false
	}
	t.burst = false
	return true
}
