package app

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPace(t *testing.T) {
	for _, f := range []struct {
		garbage, live uint64
		want          int
	}{
		{64 << 20, 0, 1000}, {64 << 20, 1 << 20, 1000}, {64 << 20, 10 << 20, 600}, {64 << 20, 32 << 20, 200},
		{64 << 20, 64 << 20, 100}, {64 << 20, 1 << 40, 100}, {16 << 20, 10 << 20, 150},
	} {
		if got := pace(f.garbage, f.live); got != f.want {
			t.Errorf("%d MiB live: %d%%, want %d%%", f.live>>20, got, f.want)
		}
	}
}

// TestPaceIsAdjusted has the collector run, with much in use and then with little.
func TestPaceIsAdjusted(t *testing.T) {
	t.Setenv("GOGC", "") // else the pace is not ours
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	PaceGC()
	much := make([]byte, 256<<20)
	for range 1000 { // the finalizer has a goroutine of its own
		if runtime.GC(); percent() == 100 {
			break
		}
	}
	runtime.KeepAlive(much)
	if got := percent(); got != 100 {
		t.Errorf("with much in use: %d%%", got)
	}
	for range 1000 {
		if runtime.GC(); percent() > 100 {
			return
		}
	}
	t.Errorf("with little in use: %d%%", percent())
}
