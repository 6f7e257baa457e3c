package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// The models of the runs that are billed, and of a summariser that costs less.
const (
	agentModel = "gpt-5.5"
	cheapModel = "gpt-5-mini"
)

// tariff is what a provider charges, in USD per million tokens.
type tariff struct {
	name  string
	price model.Price
}

func tariffs() []tariff {
	return []tariff{
		{"10% reads", model.Price{Input: 5, CachedInput: 0.5, CacheWrite: 5, Output: 30}},
		{"10% reads, 125% writes", model.Price{Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25}},
		{"5% reads, 125% writes", model.Price{Input: 5, CachedInput: 0.25, CacheWrite: 6.25, Output: 25}},
		{"no discount", model.Price{Input: 5, CachedInput: 5, CacheWrite: 5, Output: 25}},
	}
}

// measureCost plays all runs through the proxy, under several condensers, and under the default in several protocols and at several prices.
// It writes the tables to out or into a document.
func measureCost(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("cost", flag.ContinueOnError)
	fixed := fs.Int("fixed", fixedTokens, "tokens of the system prompt and the tools, made up where they were not recorded")
	doc := fs.String("doc", "", "document to put the tables into")
	if err := fs.Parse(args); err != nil {
		return err
	}
	recorded, err := runs(fs)
	if err != nil {
		return err
	}
	count, err := newCounter()
	if err != nil {
		return err
	}
	for i := range recorded {
		if recorded[i], err = furnished(recorded[i], *fixed, count); err != nil {
			return err
		}
	}
	var tables bytes.Buffer
	if err := costByCondenser(ctx, &tables, recorded); err != nil {
		return err
	}
	if err := costByProtocol(ctx, &tables, recorded); err != nil {
		return err
	}
	return publish(out, measured, *doc, tables.String())
}

// played is what all runs cost under a condenser.
type played struct {
	runs  []replay.Report
	total replay.Report
}

// play plays runs under a condenser and at a price. It fails if the proxy's own accounts differ from what upstream bills.
func play(ctx context.Context, recorded []replay.Run, condenser config.Condenser, price model.Price) (p played, err error) {
	cfg := config.Default()
	cfg.Condenser = condenser
	cfg.LLMs = map[string]config.LLM{"cheap": {Model: cheapModel}}
	info, _ := cfg.ModelFor(agentModel)
	info.Price = price
	cfg.Models = map[string]model.Info{agentModel: info}
	if err := cfg.Validate(); err != nil {
		return p, err
	}
	batch := replay.NewBatch(ctx, []replay.Setting{{Config: cfg}}, replay.Options{Model: agentModel, Encoders: tokenize.New(), Account: true}, false)
	for _, run := range recorded {
		err = errors.Join(err, batch.Play(ctx, run))
	}
	results, _ := batch.End()
	for _, s := range results.Skipped {
		err = errors.Join(err, fmt.Errorf("%s: %s", s.Name, s.Reason))
	}
	for _, r := range results.Runs {
		err = errors.Join(err, audit(&r[0]))
		p.runs = append(p.runs, r[0])
	}
	p.total = replay.Total(p.runs)
	return p, err
}

// audit reports a bill of the proxy's that is not upstream's, to the ten-thousandth of a cent.
func audit(r *replay.Report) error {
	invoice := r.With.Cost.USD + r.Own.Cost.USD
	if own := r.Account.Bill.USD(); !r.Short && math.Abs(own-invoice) > 1e-6 {
		return fmt.Errorf("%s: upstream charges %.6f USD, and the proxy's accounts say %.6f", r.Run, invoice, own)
	}
	return nil
}

// losers counts the runs that cost over 1% more than without the proxy, and says how much more the worst costs.
func (p *played) losers() string {
	n, worst := 0, 0.0
	for i := range p.runs {
		if lost := -p.runs[i].SavedShare(); lost > 0.01 {
			n, worst = n+1, max(worst, lost)
		}
	}
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, %.0f%%", n, 100*worst)
}

// band is a range of runs by their number of steps.
type band struct {
	name     string
	from, to int
}

func bands() []band { return []band{{"short", 0, 20}, {"middle", 20, 80}, {"long", 80, math.MaxInt}} }

func (b band) holds(steps int) bool { return b.from <= steps && steps < b.to }

// savedBy is what the runs of a band save, as a share of what they cost.
func (p *played) savedBy(b band) string {
	var in []replay.Report
	for i := range p.runs {
		if b.holds(p.runs[i].Steps) {
			in = append(in, p.runs[i])
		}
	}
	if len(in) == 0 {
		return "–"
	}
	total := replay.Total(in)
	return percent(total.SavedShare())
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func missing(r *replay.Report) string {
	return fmt.Sprintf("%.2f%%", 100*float64(r.Missing)/float64(max(r.Named, 1)))
}

func costByCondenser(ctx context.Context, w io.Writer, recorded []replay.Run) error {
	prices := tariffs()[0]
	for i, row := range condensers() {
		p, err := play(ctx, recorded, row.condenser, prices.price)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		t := &p.total
		if i == 0 {
			fmt.Fprintf(w, "%d runs with %d model calls and %s tokens of prompts, Chat Completions, %s: $%.2f without Dewpoint.\n\n| condenser | saved |",
				len(p.runs), t.Steps, millions(t.Without.Input), prices.name, t.Without.Cost.USD)
			for _, b := range bands() {
				fmt.Fprintf(w, " %s runs, from %d steps |", b.name, b.from)
			}
			fmt.Fprint(w, " runs that cost over 1% more, the worst | missing | forwarded, of it cached | condensations | own calls, their tokens |\n|---|---|---|---|---|---|---|---|---|---|\n")
		}
		fmt.Fprintf(w, "| %s | %s |", row.name, percent(t.SavedShare()))
		for _, b := range bands() {
			fmt.Fprintf(w, " %s |", p.savedBy(b))
		}
		fmt.Fprintf(w, " %s | %s | %s, %s | %d | %d, %s |\n", p.losers(), missing(t), millions(t.With.Input),
			percent(float64(t.With.Cached)/float64(max(t.With.Input, 1))), t.Condensations, t.Own.Calls, millions(t.Own.Input+t.Own.Output))
		fmt.Fprintf(os.Stderr, "%s: %d steps\n", row.name, t.Steps)
	}
	return nil
}

func costByProtocol(ctx context.Context, w io.Writer, recorded []replay.Run) error {
	fmt.Fprint(w, "\n### The default, by protocol and price\n\n",
		"| protocol | prices | without | with | saved | saved, as the proxy says | runs that cost over 1% more, the worst | missing | condensations |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, protocol := range []replay.Protocol{replay.ProtocolChat, replay.ProtocolResponses, replay.ProtocolMessages} {
		translated := make([]replay.Run, len(recorded))
		for i := range recorded {
			var err error
			if translated[i], err = judge.Translate(recorded[i], protocol); err != nil {
				return err
			}
		}
		name := cmp.Or(string(protocol), "chat")
		for _, prices := range tariffs() {
			p, err := play(ctx, translated, config.Default().Condenser, prices.price)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, prices.name, err)
			}
			t := &p.total
			fmt.Fprintf(w, "| %s | %s | $%.2f | $%.2f | %s | %s | %s | %s | %d |\n", name, prices.name, t.Without.Cost.USD, t.With.Cost.USD+t.Own.Cost.USD,
				percent(t.SavedShare()), percent(shareOf(p.accounts())), p.losers(), missing(t), t.Condensations)
			fmt.Fprintf(os.Stderr, "%s, %s: %d steps\n", name, prices.name, t.Steps)
		}
	}
	return nil
}

// accounts are what the proxy says of all runs. Those that it was not asked about cost the same with it as without.
func (p *played) accounts() (total account.Comparison) {
	for i := range p.runs {
		a := p.runs[i].Account
		if p.runs[i].Short {
			a.Without = account.FromNano(model.Nano(p.runs[i].Without.Cost.USD))
		}
		total.Without += a.Without
		total.Saved += a.Saved
	}
	return total
}

func shareOf(c account.Comparison) float64 { return c.Saved.USD() / c.Without.USD() }

// costed is a row: a condenser as it would be configured.
type costed struct {
	name      string
	condenser config.Condenser
}

// condensers lists the rows. A new condenser or pipeline is a new row.
func condensers() []costed {
	shipped := config.Default().Condenser
	of := func(kind string, set func(*config.Condenser)) config.Condenser {
		c := catalogue.Default(kind)
		if set != nil {
			set(&c)
		}
		return c
	}
	above := func(tokens float64) func(*config.Condenser) {
		return func(c *config.Condenser) { c.Trigger, c.MaxSize, c.MaxTokens = catalogue.TriggerLimits, 1<<20, tokens }
	}
	then := func(first, second config.Condenser) config.Condenser {
		return of(catalogue.TypePipeline, func(c *config.Condenser) { c.Condensers = []config.Condenser{first, second} })
	}
	trim, lossless := of(catalogue.TypeToolOutputTrim, nil), of(catalogue.TypeLosslessTrim, nil)
	return []costed{
		{"the default: `excerpts`, by price", shipped},
		{"`lossless_trim`, then the default", then(lossless, shipped)},
		{"`tool_output_trim`, then the default", then(trim, shipped)},
		{"`llm`, by price, the request's own model", of(catalogue.TypeLLM, nil)},
		{"`llm`, by price, " + cheapModel, of(catalogue.TypeLLM, func(c *config.Condenser) { c.LLMConfig = "cheap" })},
		{"`excerpts`, above 45,000 tokens", of(catalogue.TypeExcerpts, above(45_000))},
		{"`amortized_forgetting`, above 45,000 tokens", of(catalogue.TypeAmortizedForgetting, above(45_000))},
		{"`observation_masking`", of(catalogue.TypeObservationMasking, nil)},
		{"`recent_events`", of(catalogue.TypeRecentEvents, nil)},
		{"`tool_output_trim`", trim},
		{"`lossless_trim`", lossless},
	}
}

// furnished gives a run whose tools were not recorded some of our own making, so that what every request repeats, the system prompt and
// the tools, is as large as in use.
func furnished(run replay.Run, tokens int, count func([]byte) int) (replay.Run, error) {
	missing := tokens
	for _, m := range run.Messages {
		if roleOf(m) != "system" {
			break
		}
		missing -= count(m)
	}
	if missing <= 0 || len(run.Tools) > len("null") {
		return run, nil
	}
	made, err := json.Marshal([]any{map[string]any{"type": "function", "function": map[string]any{
		"name": "run", "description": strings.Repeat(" a", missing), "parameters": map[string]any{"type": "object"},
	}}})
	if err != nil {
		return run, fmt.Errorf("make up tools: %w", err)
	}
	run.Tools = made
	return run, nil
}

func roleOf(message json.RawMessage) string {
	var m struct{ Role string }
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	return m.Role
}

func millions(tokens int) string { return fmt.Sprintf("%.2fM", float64(tokens)/1e6) }

// newCounter counts the tokens of JSON. What it has counted it remembers, since agents send their history again and again.
// It may be used concurrently.
func newCounter() (func([]byte) int, error) {
	encoder, err := tokenize.New().Encoder(tokenize.O200k)
	if err != nil {
		return nil, err
	}
	var known sync.Map // of SHA-256 to int
	return func(text []byte) int {
		key := sha256.Sum256(text)
		if n, ok := known.Load(key); ok {
			return n.(int)
		}
		n := encoder.Count(string(text))
		known.Store(key, n)
		return n
	}, nil
}
