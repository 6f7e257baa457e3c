package model_test

import (
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/model"
)

func TestCall(t *testing.T) {
	price := model.Price{Input: 2, CachedInput: 0.5, Output: 8}
	if got, want := price.Call(1000, 400, 100), (600*2+400*0.5+100*8)/1e6; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := price.Call(1000, 5000, 0), 1000*0.5/1e6; math.Abs(got-want) > 1e-12 {
		t.Errorf("more from the cache than there was: %v, want %v", got, want)
	}
}

// TestSaved compares with the whole costs of both prompts.
func TestSaved(t *testing.T) {
	price := model.Price{Input: 10, CachedInput: 1, CacheWrite: 12.5}
	for name, c := range map[string]struct {
		prompt model.Prompt
		before float64 // what the prompt would have cost, in micro-dollars
		after  float64 // what it cost
	}{
		// 900 of 1000 would have come from the cache. 400 were sent.
		"all of it cached still": {model.Prompt{NotSent: 600, Caching: true}, 900*1 + 100*12.5, 300*1 + 100*12.5},
		"written to it again":    {model.Prompt{NotSent: 600, Rewritten: 300, Caching: true}, 900*1 + 100*12.5, 400 * 12.5},
		"no cache":               {model.Prompt{NotSent: 600, Rewritten: -600}, 1000 * 10, 400 * 10},
	} {
		notSent, rewrites := price.Saved(c.prompt)
		if got := (notSent + rewrites) * 1e6; math.Abs(got-(c.before-c.after)) > 1e-6 {
			t.Errorf("%s: saved %v micro-dollars, want %v", name, got, c.before-c.after)
		}
	}
}

func TestWrites(t *testing.T) {
	claude := model.Price{Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25}
	for _, tt := range []struct {
		price         model.Price
		written, long int
		want          float64
	}{
		{claude, 1e6, 0, 1.25},
		{claude, 1e6, 1e6, 5},
		{claude, 2e6, 1e6, 6.25},
		{claude, 0, 0, 0},
		{model.Price{Input: 2, CachedInput: 0.5, CacheWrite: 2, Output: 8}, 1e6, 0, 0},
		{model.Price{}, 1e6, 1e6, 0},
	} {
		if got := tt.price.Writes(tt.written, tt.long); got != tt.want {
			t.Errorf("%+v, %d, %d: %g, want %g", tt.price, tt.written, tt.long, got, tt.want)
		}
	}
}
