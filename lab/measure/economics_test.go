package main

import (
	"math"
	"testing"
)

// TestEconomics: condensing by price costs little more than the least that is possible, however long a run is and whatever the prices
// are, and hardly ever more than not condensing at all.
func TestEconomics(t *testing.T) {
	sum, n := 0.0, 0
	for _, r := range reckon(synthetic(7, 12)) {
		got := r.by[economics]
		if got.worst > 1.3 || got.over > 1 {
			t.Errorf("%s, %s: up to %.3f times the least, %.2f condensations above none", r.prices, r.group, got.worst, got.over)
		}
		if least := got.mean(); least < 1 {
			t.Errorf("%s, %s: %.3f times the least", r.prices, r.group, least)
		}
		sum, n = sum+got.sum, n+got.n
	}
	if mean := sum / float64(n); mean > 1.05 {
		t.Errorf("%.3f times the least on average", mean)
	}
}

// TestEconomicsThroughTheProxy: what is reckoned is what the proxy does, by the bill of an upstream with a prompt cache.
func TestEconomicsThroughTheProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("SLOW: make full runs it")
	}
	count, err := newCounter()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := compare(t.Context(), longRun(agreedSteps), count, priceSets())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if (r.condensed == 0) != (r.rule == masking) || math.Abs(r.proxy-r.reckoned) > agreedWithin*r.reckoned {
			t.Errorf("%s, %s: %.3f of the cost of none after %d condensations, reckoned %.3f", r.prices, r.rule, r.proxy, r.condensed, r.reckoned)
		}
	}
}
