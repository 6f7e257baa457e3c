package retention

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is how many times the runs are drawn again for an interval.
const resamples = 2000

// Interval is a figure with its 95% interval.
type Interval struct {
	Value, Low, High float64
}

// upTo is the numbers below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// bootstrap gives a statistic of runs and its interval, by drawing runs with replacement; the draws are always the same.
// The statistic takes the numbers of the runs drawn. Draws for which it is no number do not count.
func bootstrap(runs int, statistic func(drawn []int) float64) Interval {
	drawn := upTo(runs)
	out := Interval{Value: statistic(drawn)}
	chance := rand.New(rand.NewPCG(1, 2))
	var all []float64
	for range resamples {
		for i := range drawn {
			drawn[i] = chance.IntN(runs)
		}
		if v := statistic(drawn); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return Interval{Value: out.Value, Low: math.NaN(), High: math.NaN()}
	}
	out.Low, out.High = all[len(all)*25/1000], all[min(len(all)*975/1000, len(all)-1)]
	return out
}
