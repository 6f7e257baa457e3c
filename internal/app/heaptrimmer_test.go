package app

import (
	"runtime/metrics"
	"slices"
	"testing"
)

// TestHeapTrimmer: after a burst the heap is trimmed once, in the first quiet step; without a burst it is not.
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

// TestTrimmerSource checks that the runtime still tells what is asked of it.
func TestTrimmerSource(t *testing.T) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[0].Value.Uint64() == 0 {
		t.Errorf("%v", s[0].Value)
	}
}
