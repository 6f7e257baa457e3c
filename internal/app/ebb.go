package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// ebbStep is how often the process is looked at, and ebbing how many times it must have been found calm.
	ebbStep, ebbing = 500 * time.Millisecond, 2
	// calm is how many bytes a quiet process allocates in a step at most; more is a flood.
	calm = 4 << 20
	// worthwhile is how much must be got back, besides as much as is in use, for the work of it.
	worthwhile = 16 << 20
)

// Ebb gives memory back to the system when a flood of requests is over, until ctx ends. Go itself collects by what is
// allocated: a process that has become quiet would keep what it needed at its worst for minutes. It has an effect on the
// whole process: have it run once. It costs next to nothing without a flood.
func Ebb(ctx context.Context) {
	gauges := newGauges()
	t := newTide(gauges.read())
	for each := time.NewTicker(ebbStep); ; {
		select {
		case <-ctx.Done():
			each.Stop()
			return
		case <-each.C:
		}
		t.step(gauges.read, func() {
			runtime.GC() // what pools hold goes with the second one
			debug.FreeOSMemory()
		})
	}
}

// level is what the runtime has, in bytes.
type level struct {
	allocated uint64 // ever
	live      uint64 // after the last collection
	objects   uint64 // live ones and garbage
	free      uint64 // kept for later
}

// tide notices the end of a flood.
type tide struct {
	allocated uint64
	flooded   bool   // since memory was given back
	quiet     int    // steps
	left      uint64 // what was in use when memory was given back, or at the beginning
}

func newTide(l level) *tide { return &tide{allocated: l.allocated, left: l.objects} }

// step looks at the process, and has memory given back if a flood is over.
func (t *tide) step(read func() level, give func()) {
	if !t.over(read()) {
		return
	}
	give()
	t.flooded, t.quiet, t.left = false, 0, read().live
}

// over reports whether the process has been quiet for long enough after a flood, and has much that it may not need. What was
// live at the last collection tells too little: it may have been in the middle of the flood, and none comes after it.
func (t *tide) over(l level) bool {
	if l.allocated-t.allocated > calm {
		t.flooded, t.quiet = true, 0
	} else {
		t.quiet++
	}
	t.allocated = l.allocated
	return t.flooded && t.quiet >= ebbing && l.objects+l.free >= 2*min(l.live, t.left)+worthwhile
}

// gauges reads levels without stopping the world.
type gauges []metrics.Sample

func newGauges() gauges {
	var g gauges
	for _, name := range []string{
		"/gc/heap/allocs:bytes", "/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes",
		"/memory/classes/heap/free:bytes",
	} {
		g = append(g, metrics.Sample{Name: name})
	}
	return g
}

func (g gauges) read() level {
	metrics.Read(g)
	return level{
		allocated: g[0].Value.Uint64(), live: g[1].Value.Uint64(), objects: g[2].Value.Uint64(),
		free: g[3].Value.Uint64(),
	}
}
