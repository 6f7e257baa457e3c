package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// ebbStep is how often the process is looked at.
	ebbStep = 500 * time.Millisecond
	// calm is how many bytes a quiet process allocates in a step at most; more is a flood.
	calm = 4 << 20
	// firstEbb and lastEbb are for how many steps a process was quiet when it collects first and last: powers of two.
	firstEbb, lastEbb = 2, 128
	// worthwhile is how much must be got back, besides as much as is in use, for the work of it.
	worthwhile = 16 << 20
)

// Ebb gives memory back to the system when a flood of requests is over, until ctx ends. Go itself collects by what is
// allocated: a process that has become quiet would keep what it needed at its worst for minutes. So it collects when it has
// been quiet for a second, and again after two, four, and so on up to a minute, since what a flood has brought may be in use
// for longer. It has an effect on the whole process: have it run once. It costs next to nothing without a flood.
func Ebb(ctx context.Context) {
	gauges := newGauges()
	t := tide{allocated: gauges.read().allocated}
	for each := time.NewTicker(ebbStep); ; {
		select {
		case <-ctx.Done():
			each.Stop()
			return
		case <-each.C:
		}
		t.step(gauges.read, runtime.GC, debug.FreeOSMemory)
	}
}

// level is what the runtime has, in bytes.
type level struct {
	allocated uint64 // ever
	live      uint64 // after the last collection
	free      uint64 // kept for later
}

// tide notices the end of a flood.
type tide struct {
	allocated uint64
	flooded   bool
	quiet     int // steps
}

// step looks at the process. When a flood is over it collects, and gives back what is free if that is much.
func (t *tide) step(read func() level, collect, give func()) {
	if !t.over(read()) {
		return
	}
	collect()
	if l := read(); l.free >= l.live+worthwhile {
		give()
	}
}

// over reports whether it is time to collect after a flood.
func (t *tide) over(l level) bool {
	if l.allocated-t.allocated > calm {
		t.flooded, t.quiet = true, 0
	} else {
		t.quiet++
	}
	t.allocated = l.allocated
	t.flooded = t.flooded && t.quiet <= lastEbb
	return t.flooded && t.quiet >= firstEbb && t.quiet&(t.quiet-1) == 0
}

// gauges reads levels without stopping the world.
type gauges []metrics.Sample

func newGauges() gauges {
	var g gauges
	for _, name := range []string{"/gc/heap/allocs:bytes", "/gc/heap/live:bytes", "/memory/classes/heap/free:bytes"} {
		g = append(g, metrics.Sample{Name: name})
	}
	return g
}

func (g gauges) read() level {
	metrics.Read(g)
	return level{allocated: g[0].Value.Uint64(), live: g[1].Value.Uint64(), free: g[2].Value.Uint64()}
}
