package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// agreedSteps is how long the run is by which the reckoning is held to the proxy, and agreedWithin how far they may be apart, as a share.
const (
	outputPrice = 5 // in those of an input token

	agreedSteps  = 150
	agreedWithin = 0.05

	floorTokens = 16_000 // as in internal/serve/app
)

// compared is what a run costs under a rule, as a share of what it costs without condensing.
type compared struct {
	prices, rule    string
	condensed       int // steps of the proxy's
	proxy, reckoned float64
}

// compare plays a run through the proxy, in front of an upstream with a prompt cache, and reckons what it costs. Only rules that ask no
// model are compared: of a model's answers the fake upstream's are no measure.
func compare(ctx context.Context, run replay.Run, count func([]byte) int, sets []priced) (all []compared, err error) {
	played := func(c config.Condenser, p priced) (replay.Report, error) {
		all, err := play(ctx, []replay.Run{run}, c, model.Price{Input: 1, CachedInput: p.read, CacheWrite: p.write, Output: outputPrice})
		return all.total, err
	}
	r, err := counted(ctx, run, count)
	if err != nil {
		return nil, err
	}
	none, err := played(catalogue.Default(catalogue.TypeNoop), sets[0])
	if err != nil {
		return nil, err
	}
	rules := comparedRules()
	sameForAll := make([]*replay.Report, len(rules)) // what a rule does that does not go by price
	for _, p := range sets {
		if p.in > 0 {
			continue
		}
		e := condense.Economics{Read: p.read, Write: p.write, Target: targetTokens, Floor: floorTokens}
		whole, _ := rolling(to(targetTokens), never)(&r, e)
		bill := func(b replay.Bill) float64 { return p.read*float64(b.Cached) + p.write*float64(b.Input-b.Cached) }
		for i, x := range rules {
			got := sameForAll[i]
			if got == nil {
				one, err := played(x.condenser, p)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", p.name, x.name, err)
				}
				if got = &one; x.name != economics {
					sameForAll[i] = got
				}
			}
			cost, _ := x.cost(&r, e)
			all = append(all, compared{p.name, x.name, got.Condensations, bill(got.With) / bill(none.With), cost / whole})
		}
	}
	return all, nil
}

// counted is a run in the tokens that the proxy counts. What every request repeats is the first two messages.
func counted(ctx context.Context, run replay.Run, count func([]byte) int) (sizes, error) {
	r := sized(run, count, rand.New(rand.NewPCG(0, 0)))
	clear(r.cold)
	cfg := config.Default()
	cfg.Condenser = catalogue.Default(catalogue.TypeNoop)
	before := 0
	_, err := replay.Play(ctx, cfg, run, replay.Options{Model: agentModel, Each: func(s replay.Step) {
		i, step := s.Number-1, s.Tokens-before
		if i == 0 {
			r.fixed, step = s.Tokens, 0
		}
		r.results[i] = r.results[i] * step / max(r.steps[i], 1)
		r.steps[i], before = step, s.Tokens
	}})
	return r, err
}

// comparedRule is a rule, and the condenser that keeps it.
type comparedRule struct {
	rule
	condenser config.Condenser
}

// comparedRules are the rules that are compared.
func comparedRules() (all []comparedRule) {
	for _, limit := range []int{40_000, 80_000} {
		c := catalogue.Default(catalogue.TypeExcerpts)
		c.Trigger, c.MaxSize, c.MaxTokens = catalogue.TriggerLimits, 1<<20, float64(limit)
		all = append(all, comparedRule{rule{fmt.Sprintf("above %d,000", limit/1000), rolling(halfOf(limit), above(limit))}, c})
	}
	c := catalogue.Default(catalogue.TypeExcerpts)
	c.Trigger, c.MaxSize = catalogue.TriggerEconomics, 1<<20
	return append(all,
		comparedRule{rule{masking, (*sizes).masked}, catalogue.Default(catalogue.TypeObservationMasking)},
		comparedRule{rule{economics, rolling(remembering, byPrice)}, c})
}

func writeCompared(w io.Writer, rows []compared) {
	fmt.Fprintf(w, "\n### Through the proxy\n\n| prices | rule | condensed steps | proxy | reckoned |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %d | %.3f | %.3f |\n", r.prices, r.rule, r.condensed, r.proxy, r.reckoned)
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
