package app

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// TestLimitMemory checks that the control group's limit is used unless GOMEMLIMIT is set, to a limit or to off.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	group := memlimit.Limit(1_000_000_000)
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for _, f := range []struct {
		env         string
		group       memlimit.Provider
		limit, want int64
	}{
		{"", group, math.MaxInt64, 900_000_000}, {"off", group, math.MaxInt64, math.MaxInt64}, {"2GiB", group, 2 << 30, 2 << 30},
		{"", none, math.MaxInt64, math.MaxInt64}, {"", memlimit.Limit(0), math.MaxInt64, math.MaxInt64},
		{"", memlimit.Limit(math.MaxUint64), math.MaxInt64, math.MaxInt64},
	} {
		t.Setenv("GOMEMLIMIT", f.env)
		debug.SetMemoryLimit(f.limit) // as the runtime does with the variable
		limitMemory(f.group, &config.Config{}, zap.NewNop())
		if got := debug.SetMemoryLimit(-1); got != f.want {
			t.Errorf("GOMEMLIMIT=%s: %d, want %d", f.env, got, f.want)
		}
	}
}

// TestHeapTrimmer checks that the heap is trimmed once after a burst, in the first quiet step, and not without a burst.
func TestHeapTrimmer(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		steps []uint64 // bytes allocated in each
		want  []int    // the steps after which the heap is trimmed
	}{
		"a burst":                  {[]uint64{900 * mb, 0, 0, 0}, []int{1}},
		"a long burst":             {[]uint64{900 * mb, 90 * mb, 9 * mb, 8 * mb, 0}, []int{3}},
		"two bursts":               {[]uint64{900 * mb, 0, 0, 90 * mb, 0, 0}, []int{1, 4}},
		"low load":                 {[]uint64{8 * mb, 8 * mb, 8 * mb}, nil},
		"load, no burst":           {[]uint64{20 * mb, 0, 20 * mb, 0}, nil},
		"low load after a burst":   {[]uint64{900 * mb, 4 * mb, 4 * mb, 4 * mb}, []int{1}},
		"steady load after it":     {[]uint64{900 * mb, 20 * mb, 20 * mb, 20 * mb}, nil},
		"allocated before it runs": {[]uint64{0, 0, 0}, nil},
	} {
		var h heapTrimmer
		var total uint64
		var got []int
		for i, n := range c.steps {
			if total += n; h.due(total) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: trimmed after the steps %v, want %v", name, got, c.want)
		}
	}
}

// TestTrimmerSource checks that the runtime still supports the metric.
func TestTrimmerSource(t *testing.T) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[0].Value.Uint64() == 0 {
		t.Errorf("%v", s[0].Value)
	}
}
