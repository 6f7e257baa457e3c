package app

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestTide(t *testing.T) {
	const mb = 1 << 20
	f := func(name string, levels []level, want int) {
		t.Helper()
		tide := tide{left: 20 * mb}
		got := -1
		for i, l := range levels {
			if tide.over(l) {
				got = i
				break
			}
		}
		if got != want {
			t.Errorf("%s: over after step %d, want %d", name, got, want)
		}
	}
	flood := level{allocated: 900 * mb, live: 20 * mb, objects: 40 * mb, free: 300 * mb}
	f("quiet after a flood", []level{flood, flood, flood}, 2)
	busy := func(step uint64) level { l := flood; l.allocated += step * 9 * mb; return l }
	f("busy", []level{busy(0), busy(1), busy(2), busy(3)}, -1)
	f("quiet at last", []level{busy(0), busy(1), busy(1), busy(2), busy(2), busy(2)}, 5)
	f("little to give", []level{{100, 20 * mb, 40 * mb, 10 * mb}, {100, 20 * mb, 40 * mb, 10 * mb}, {100, 20 * mb, 40 * mb, 10 * mb}}, -1)
	middle := level{allocated: 900 * mb, live: 150 * mb, objects: 250 * mb}
	f("the last collection was in the middle of the flood", []level{middle, middle, middle}, 2)
	for left, want := range map[uint64]bool{120 * mb: false, 20 * mb: true} { // it is needed, or it is not
		tide := tide{}
		tide.ebbed(level{live: left})
		over := false
		for range ebbing + 1 {
			over = over || tide.over(middle)
		}
		if over != want {
			t.Errorf("%d MB were left: over is %v", left/mb, over)
		}
	}
	again := tide{allocated: flood.allocated, given: flood.allocated}
	for range 5 {
		if again.over(flood) {
			t.Error("memory is given back again and again")
		}
	}
	garbage := level{allocated: 900 * mb, live: 20 * mb, objects: 200 * mb}
	f("garbage that nothing collects", []level{garbage, garbage, garbage}, 2)
}

// TestGauges checks that the runtime still tells what is asked of it, and that giving memory back is seen there: else a
// tide would be over again and again.
func TestGauges(t *testing.T) {
	g := newGauges()
	garbage := make([]byte, 64<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	before := g.read()
	runtime.KeepAlive(garbage)
	runtime.GC()
	debug.FreeOSMemory()
	after := g.read()
	if before.objects < 64<<20 || before.allocated < 64<<20 {
		t.Errorf("before: %+v", before)
	}
	if after.live == 0 || after.objects+after.free >= 2*after.live+worthwhile {
		t.Errorf("after: %+v", after)
	}
}
