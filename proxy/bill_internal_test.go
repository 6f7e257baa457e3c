package proxy

import (
	"math"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestBill(t *testing.T) {
	price := model.Price{Input: 10, CachedInput: 1, CacheWrite: 10, Output: 40}
	surcharge := model.Price{Input: 10, CachedInput: 1, CacheWrite: 12.5, Output: 40}
	usage := func(input, cached int) *session.Usage { return &session.Usage{Input: input, Cached: cached} }
	for name, c := range map[string]struct {
		bill   bill
		tokens int
		micros float64 // micro-dollars
	}{
		"unchanged saves nothing, cached or not":    {bill{before: 1000, after: 1000, known: 900, price: price, usage: usage(1000, 0)}, 0, 0},
		"what would have been cached saves a tenth": {bill{before: 1000, after: 400, known: 900, price: price, usage: usage(400, 300)}, 600, 600 * 1},
		// Unchanged: 900 from the cache, 100 new. Condensed: 400, none of it from the cache.
		"the cache is written again":            {bill{before: 1000, after: 400, known: 900, condensed: true, price: price, usage: usage(400, 0)}, 600, 900*1 + 100*10 - 400*10},
		"writing it has a surcharge":            {bill{before: 1000, after: 400, known: 900, condensed: true, price: surcharge, usage: usage(400, 0)}, 600, 900*1 + 100*12.5 - 400*12.5},
		"writing it for an hour costs twice":    {bill{before: 1000, after: 400, known: 900, condensed: true, price: surcharge, usage: &session.Usage{Input: 400, Written: 400, WrittenLong: 400}}, 600, 900*1 + 100*20 - 400*20},
		"a part of it is still there":           {bill{before: 1000, after: 400, known: 900, condensed: true, price: price, usage: usage(400, 100)}, 600, 900*1 + 100*10 - 300*10 - 100*1},
		"a cold cache saves the whole price":    {bill{before: 1000, after: 400, known: 900, price: price, usage: usage(400, 0)}, 600, 600 * 10},
		"condensed after a long pause":          {bill{before: 1000, after: 400, known: 900, condensed: true, idle: 2 * time.Hour, price: price, usage: usage(400, 0)}, 600, 600 * 10},
		"a shared head in a cold cache":         {bill{before: 1000, after: 400, known: 900, idle: 2 * time.Hour, price: price, usage: usage(400, 50)}, 600, 600 * 10},
		"nothing reported, warm":                {bill{before: 1000, after: 400, known: 900, price: price}, 600, 600 * 1},
		"nothing reported, condensed":           {bill{before: 1000, after: 400, known: 900, condensed: true, price: price}, 600, 900*1 + 100*10 - 400*10},
		"no price, no money":                    {bill{before: 1000, after: 400, known: 900, usage: usage(400, 300)}, 600, 0},
		"a longer request costs":                {bill{before: 400, after: 500, known: 0, price: price, usage: usage(500, 0)}, -100, -100 * 10},
		"more reported from the cache than all": {bill{before: 1000, after: 400, known: 900, price: price, usage: usage(400, 5000)}, 600, 1000*1 - 400*1},
		"nothing was counted":                   {bill{before: 10, after: 0, price: price}, 0, 0},
	} {
		saved := c.bill.saved()
		tokens, usd := saved.Tokens, saved.USD()
		if tokens != c.tokens || math.Abs(usd*1e6-c.micros) > 1e-6 {
			t.Errorf("%s: %d tokens, %v micro-dollars; want %d, %v", name, tokens, usd*1e6, c.tokens, c.micros)
		}
	}
}

// TestBillOfARun: the requests after a condensation pay back the cost of writing the cache again, and the sum shows that.
func TestBillOfARun(t *testing.T) {
	price := model.Price{Input: 2, CachedInput: 0.5, CacheWrite: 2, Output: 8}
	sum, crossed := 0.0, 0
	for step := range 60 {
		b := bill{before: 100_000 + 1000*step, known: 99_000 + 1000*step, after: 20_000 + 1000*step, price: price}
		b.usage = &session.Usage{Input: b.after, Cached: b.after - 1000}
		if b.condensed = step == 0; b.condensed {
			b.usage.Cached = 2000
		}
		usd := b.saved().USD()
		if sum += usd; sum > 0 && crossed == 0 {
			crossed = step + 1
		}
		if step > 0 && math.Abs(usd-80_000*0.5/1e6) > 1e-9 {
			t.Fatalf("step %d saved %v", step, usd)
		}
	}
	if crossed < 1 || crossed > 3 {
		t.Errorf("paid back after %d steps", crossed)
	}
}

// TestAccountOfADoubtedCount uses our own count but charges what upstream reports. A request that is not condensed because its tenant
// observes has an estimate.
func TestAccountOfADoubtedCount(t *testing.T) {
	o := recorder{price: model.Price{Input: 10, CachedInput: 1, CacheWrite: 10, Output: 40}}
	usage := &session.Usage{Input: 40, Cached: 40}
	o.answer = &dialect.Answer{Usage: usage}
	o.record.Call = Call{Usage: usage, Doubted: true}
	o.record.Turn = &TurnRecord{Before: session.Size{Tokens: 1000}, Known: 900, After: session.Size{Tokens: 400}}
	want := Account{Priced: true, Charged: 40e-6, Saved: Saving{Tokens: 600, NotSent: 600e-6}}
	if a := o.account(); a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	o.record.Turn.After, o.record.Turn.Spared = o.record.Turn.Before, 600
	if a := o.account(); a.Saved != (Saving{}) || a.Spare != want.Saved {
		t.Errorf("observed: %+v", a)
	}
}

// TestEstimateGoesByWhatTheCacheHad: a request that is not condensed shows what its provider's cache held, even if that is nothing, and
// whenever the thread was last seen.
func TestEstimateGoesByWhatTheCacheHad(t *testing.T) {
	for name, c := range map[string]struct {
		cached int
		made   bool
		idle   time.Duration
		usd    float64
	}{
		"no cache":             {0, false, 0, 6000e-6},
		"no cache, condensed":  {0, true, 0, 6000e-6},
		"warm":                 {900, false, 0, 600e-6},
		"warm after two hours": {900, false, 2 * time.Hour, 600e-6},
		"warm, condensed":      {900, true, 0, 600e-6 - 300*9e-6},
	} {
		o := recorder{price: model.Price{Input: 10, CachedInput: 1, CacheWrite: 10, Output: 40}, idle: c.idle}
		o.record.Call = Call{Usage: &session.Usage{Input: 1000, Cached: c.cached}}
		o.record.Turn = &TurnRecord{Before: session.Size{Tokens: 1000}, Known: 900, After: session.Size{Tokens: 1000}}
		o.record.Turn.Spared, o.record.Turn.Made = 600, c.made
		got := o.account().Spare
		if got.Tokens != 600 || math.Abs(got.USD()-c.usd) > 1e-12 {
			t.Errorf("%s: %+v, want %v dollars", name, got, c.usd)
		}
	}
}
