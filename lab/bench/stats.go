package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// quantile is the smallest value that at least a share q of the values is not above; 0 of none.
func quantile[T cmp.Ordered](values []T, q float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// Spread is a figure that was measured several times.
type Spread struct {
	Median float64
	Low    float64 // the least
	High   float64
}

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1]}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
