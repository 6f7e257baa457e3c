package app

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

const mb = 1 << 20

// shore is a process in a test, whose garbage nobody but its ebb collects.
type shore struct {
	level
	inUse     func(step int) uint64
	heap      uint64 // live objects and garbage
	step      int
	collected []int // at which steps
	given     []int
}

// watch has the process allocate something in each step.
func (s *shore) watch(steps int, allocates func(step int) uint64) {
	var t tide
	for s.step = range steps {
		s.allocated += allocates(s.step)
		s.heap += allocates(s.step)
		s.free -= min(s.free, allocates(s.step))
		t.step(func() level { return s.level }, s.collect, s.give)
	}
}

func (s *shore) collect() {
	s.collected = append(s.collected, s.step)
	s.live = min(s.heap, s.inUse(s.step))
	s.heap, s.free = s.live, s.free+s.heap-s.live
}

func (s *shore) give() { s.free, s.given = 0, append(s.given, s.step) }

// TestTide: after a flood memory is given back, once it is free; nothing is collected where there was none.
func TestTide(t *testing.T) {
	flood := func(step int) uint64 { return []uint64{900 * mb, 0}[min(step, 1)] }
	little := func(int) uint64 { return 20 * mb }
	until := func(end int) func(int) uint64 {
		return func(step int) uint64 { return []uint64{400 * mb, 20 * mb}[min(step/end, 1)] }
	}
	looks := []int{2, 4, 8, 16, 32, 64, 128}
	for name, c := range map[string]struct {
		allocates        func(step int) uint64
		inUse            func(step int) uint64
		collected, given []int
	}{
		"a flood":                          {flood, little, looks, []int{2}},
		"connections hold what it brought": {flood, until(11), looks, []int{2, 16}},
		"all of it stays in use":           {flood, func(int) uint64 { return 900 * mb }, looks, nil},
		"a low load":                       {func(int) uint64 { return 4 * mb }, little, nil, nil},
		"a low load after a flood":         {func(step int) uint64 { return max(flood(step), 3*mb) }, little, looks, []int{2, 32, 64, 128}},
		"busy":                             {func(int) uint64 { return 5 * mb }, little, nil, nil},
		"little to give":                   {func(step int) uint64 { return flood(step) / 100 }, little, looks, nil},
		"two floods":                       {func(step int) uint64 { return flood(step % 200) }, little, append(looks[:7:7], 202, 204, 208, 216, 232, 264), []int{2, 202}},
	} {
		s := &shore{inUse: c.inUse}
		s.watch(300, c.allocates)
		if !slices.Equal(s.collected, c.collected) || !slices.Equal(s.given, c.given) {
			t.Errorf("%s: collected at the steps %v, want %v; given back at %v, want %v", name, s.collected, c.collected, s.given, c.given)
		}
	}
}

// TestGauges checks that the runtime still tells what is asked of it, and that giving memory back is seen there.
func TestGauges(t *testing.T) {
	g := newGauges()
	begun := g.read()
	garbage := make([]byte, 64<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.GC()
	used := g.read()
	runtime.KeepAlive(garbage)
	runtime.GC()
	free := g.read()
	debug.FreeOSMemory()
	given := g.read()
	if used.allocated < begun.allocated+64*mb || used.live < 64*mb {
		t.Errorf("used: %+v", used)
	}
	if free.live > used.live-60*mb || free.free < 60*mb {
		t.Errorf("free: %+v", free)
	}
	if given.free > free.free-60*mb {
		t.Errorf("given back: %+v", given)
	}
}
