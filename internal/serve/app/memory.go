package app

import (
	"context"
	"math"
	"os"
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
