package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
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
	count, err := newCounter()
	if err != nil {
		t.Fatal(err)
	}
	long := longRun(110)
	cost := func(c config.Condenser) (float64, int) {
		row, err := play(t.Context(), plan{"", c}, []replay.Run{long}, count)
		if err != nil || len(row.refused) > 0 {
			t.Fatal(err, row.refused)
		}
		row.use.written = 0 // the same under every rule, and not reckoned
		return price{read: 0.1, write: 1.25}.cost(row.use), row.condensed
	}
	byPrice := config.NewCondenser(config.TypeExcerpts)
	byPrice.Trigger, byPrice.MaxSize = config.TriggerEconomics, 1<<20
	none, _ := cost(config.NewCondenser(config.TypeNoop))
	got, condensed := cost(byPrice)

	e := condense.Economics{Read: 0.1, Write: 1.25, Target: targetTokens} // as play has them
	r := sized(long, count, rand.New(rand.NewPCG(0, 0)))
	clear(r.cold)
	r.fixed = count(long.Messages[0]) + count(long.Messages[1])
	r.steps[0] -= r.fixed
	reckonedNone, _ := rules()[0].cost(&r, e)
	all := rules()
	reckoned, _ := all[len(all)-1].cost(&r, e)
	measured, expected := got/none, reckoned/reckonedNone
	t.Logf("%.3f of the cost of none after %d condensations, reckoned %.3f", measured, condensed, expected)
	if condensed < 2 || expected > 0.8 || math.Abs(measured-expected) > 0.05*expected {
		t.Errorf("%.3f of the cost of none after %d condensations, reckoned %.3f", measured, condensed, expected)
	}
}

// longRun is a run of so many steps.
func longRun(steps int) replay.Run {
	random := rand.New(rand.NewPCG(3, 3))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "word%d ", random.IntN(1000))
		}
		return b.String()
	}
	run := replay.Run{Name: "long"}
	add := func(m map[string]any) {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		run.Messages = append(run.Messages, text)
	}
	add(map[string]any{"role": "system", "content": words(3000)})
	add(map[string]any{"role": "user", "content": "Look at everything."})
	for i := range steps {
		id := fmt.Sprintf("call_%d", i)
		add(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": "look", "arguments": "{}"},
		}}})
		add(map[string]any{"role": "tool", "tool_call_id": id, "content": words(100 + random.IntN(500))})
	}
	run.Final = json.RawMessage(`{"role":"assistant","content":"Done."}`)
	return run
}
