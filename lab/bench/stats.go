package bench

import (
	"cmp"
	"math"
	"slices"
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
	Median float64 `json:"median"`
	Low    float64 `json:"low"` // the least
	High   float64 `json:"high"`
}

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: middle(sorted), Low: sorted[0], High: sorted[len(sorted)-1]}
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Line is the straight line that fits points best (least squares).
type Line struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
	R2        float64 `json:"r2"` // share of the variance that the line explains
}

func fit(xs, ys []float64) Line {
	n := float64(len(xs))
	var sx, sy, sxx, sxy, syy float64
	for i, x := range xs {
		sx, sy, sxx, sxy, syy = sx+x, sy+ys[i], sxx+x*x, sxy+x*ys[i], syy+ys[i]*ys[i]
	}
	vx, vy, cov := sxx-sx*sx/n, syy-sy*sy/n, sxy-sx*sy/n
	if n < 2 || vx == 0 {
		return Line{}
	}
	l := Line{Slope: cov / vx}
	l.Intercept = (sy - l.Slope*sx) / n
	if vy > 0 {
		l.R2 = cov * cov / (vx * vy)
	}
	return l
}
