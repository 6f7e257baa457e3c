package model_test

import (
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func TestCall(t *testing.T) {
	price := model.Price{Input: 2, CachedInput: 0.5, Output: 8}
	if got, want := price.Call(model.Usage{Input: 1000, Cached: 400, Output: 100}), (600*2+400*0.5+100*8)/1e6; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := price.Call(model.Usage{Input: 1000, Cached: 5000}), 1000*0.5/1e6; math.Abs(got-want) > 1e-12 {
		t.Errorf("more from the cache than there was: %v, want %v", got, want)
	}
	claude := model.Price{Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25}
	if got := claude.Call(model.Usage{Input: 2e6, Written: 2e6, WrittenLong: 1e6}); got != 16.25 {
		t.Errorf("written, half of it for an hour: %g", got)
	}
	price.CacheWrite = 2.5
	if got, want := price.Call(model.Usage{Input: 1000, Cached: 400, Written: 500, WrittenLong: 200}), (400*0.5+300*2.5+200*4+100*2)/1e6; math.Abs(got-want) > 1e-12 {
		t.Errorf("written to the cache: %v, want %v", got, want)
	}
}

// TestSaved compares with the difference of the full costs of both prompts.
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

// TestLongPromptsHaveTheirTier: above the edge the whole call has the higher price, whichever way it is summed, and a prompt that is brought below
// the edge has saved that, too.
func TestLongPromptsHaveTheirTier(t *testing.T) {
	info, _ := (model.Table{}).Lookup("gemini-2.5-pro")
	p := info.Price
	for _, c := range []struct {
		usage model.Usage
		usd   float64
	}{
		{model.Usage{Input: 200_000, Output: 1000}, 0.26}, {model.Usage{Input: 200_001, Output: 1000}, 0.5150025},
		{model.Usage{Input: 300_000, Cached: 200_000, Output: 1000}, 0.315},
	} {
		if got := p.Call(c.usage); math.Abs(got-c.usd) > 1e-9 {
			t.Errorf("%+v: %v USD, want %v", c.usage, got, c.usd)
		}
		if got, want := p.Pico(c.usage), int64(math.Round(c.usd*1e12)); got != want {
			t.Errorf("%+v: %d, want %d", c.usage, got, want)
		}
	}
	if notSent, _ := p.Saved(model.Prompt{Full: 250_000, NotSent: 150_000}); math.Abs(notSent-(0.15*0.25+0.1*0.125)) > 1e-9 {
		t.Errorf("%v USD saved below the edge", notSent)
	}
	if notSent, _ := p.Saved(model.Prompt{Full: 150_000, NotSent: 100_000}); math.Abs(notSent-0.1*0.125) > 1e-9 {
		t.Errorf("%v USD saved", notSent)
	}
	for _, name := range []string{"gemini-2-5-pro", "gemini-3-pro", "gemini-3-1-pro", "gemini-3-1-pro-preview-customtools"} {
		if got, known := (model.Table{}).Lookup(name); known != name || got.Price.Long.Input <= got.Price.Input || got.Price.Long.Output <= got.Price.Output {
			t.Errorf("%s: %+v", name, got.Price)
		}
	}
}
