package app

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

const mb = 1 << 20

// beach is a process in a test: how it is at each step, and what giving memory back leaves in use.
type beach struct {
	levels []level
	left   uint64
	at     int
	given  []int // steps
}

func (b *beach) read() level { return b.levels[b.at] }

// watch looks at all steps.
func (b *beach) watch(t *tide) {
	for b.at = range b.levels {
		t.step(b.read, func() {
			b.given = append(b.given, b.at)
			b.levels[b.at].live = b.left // nobody looks at this step again
		})
	}
}

// TestTide: memory is given back once after a flood, when that is worth it.
func TestTide(t *testing.T) {
	flood := level{allocated: 900 * mb, live: 20 * mb, objects: 40 * mb, free: 300 * mb}
	garbage := level{allocated: 900 * mb, live: 20 * mb, objects: 200 * mb}
	middle := level{allocated: 900 * mb, live: 150 * mb, objects: 250 * mb}
	little := level{allocated: 900 * mb, live: 20 * mb, objects: 40 * mb, free: 10 * mb}
	later := func(l level, more uint64) level { l.allocated += more; return l }
	repeat := func(l level, n int) []level { return slices.Repeat([]level{l}, n) }
	var steady, busy []level
	for n := range uint64(100) {
		steady, busy = append(steady, later(flood, n*4*mb)), append(busy, later(flood, n*9*mb))
	}
	for name, c := range map[string]struct {
		levels []level
		left   uint64 // in use after memory was given back
		begun  uint64 // in use at the beginning
		want   []int
	}{
		"quiet after a flood":                                {levels: repeat(flood, 20), left: 20 * mb, want: []int{2}},
		"garbage that nobody collects":                       {levels: repeat(garbage, 20), left: 20 * mb, want: []int{2}},
		"the last collection was in the middle of the flood": {levels: repeat(middle, 20), left: 20 * mb, want: []int{2}},
		"little to give":                                     {levels: repeat(little, 20), left: 20 * mb, begun: 20 * mb},
		"busy":                                               {levels: busy, left: 20 * mb},
		"a low load after the flood":                         {levels: steady, left: 20 * mb, want: []int{2}},
		"a second flood":                                     {levels: append(repeat(flood, 9), repeat(later(flood, 100*mb), 9)...), left: 20 * mb, want: []int{2, 11}},
		"less in use than after the first flood":             {levels: append(repeat(middle, 9), repeat(later(garbage, 100*mb), 9)...), left: 120 * mb, want: []int{2, 11}},
		"a second flood, all of it in use":                   {levels: append(repeat(middle, 9), repeat(later(middle, 100*mb), 9)...), left: 120 * mb, want: []int{2}},
	} {
		b := &beach{levels: c.levels, left: c.left}
		b.watch(newTide(level{objects: c.begun}))
		if !slices.Equal(b.given, c.want) {
			t.Errorf("%s: given back after the steps %v, want %v", name, b.given, c.want)
		}
	}
	b := &beach{levels: steady}
	if b.watch(newTide(steady[0])); b.given != nil {
		t.Errorf("given back without a flood after the steps %v", b.given)
	}
}

// TestGauges checks that the runtime still tells what is asked of it, and that giving memory back is seen there.
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
