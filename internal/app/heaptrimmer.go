package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

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
