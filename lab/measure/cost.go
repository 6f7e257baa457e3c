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
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/lab/retention"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// measureCost plays all runs under every plan, and writes the table to out or into a document.
func measureCost(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("cost", flag.ContinueOnError)
	maxTokens := fs.Float64("max-tokens", 48000, "limit of the rolling condensers")
	fixed := fs.Int("fixed", fixedTokens, "tokens of the system prompt and the tools, made up where they were not recorded")
	only := fs.String("only", "", "the one row to measure, next to no condensing")
	doc := fs.String("doc", "", "document to put the table into")
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
	var rows []row
	for i, p := range plans(*maxTokens) {
		if i > 0 && *only != "" && p.name != *only {
			continue
		}
		r, err := play(ctx, p, recorded, count)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %d steps\n", p.name, r.use.steps)
	}
	var table bytes.Buffer
	write(&table, rows)
	if err := publish(out, measured, *doc, table.String()); err != nil {
		return err
	}
	return refused(rows)
}

// row is what came of a plan.
type row struct {
	name      string
	use       use
	runs      map[string]use
	condensed int     // steps
	refused   []error // what upstream refused
}

// play plays all runs under a plan, several at a time.
func play(ctx context.Context, p plan, recorded []replay.Run, count func([]byte) int) (row, error) {
	reports := make([]played, len(recorded))
	var playing errgroup.Group
	playing.SetLimit(runtime.GOMAXPROCS(0))
	for i, run := range recorded {
		playing.Go(func() (err error) {
			reports[i], err = p.play(ctx, run, count)
			return err
		})
	}
	err := playing.Wait()
	out := row{name: p.name, runs: map[string]use{}}
	for _, o := range reports {
		out.add(o)
	}
	return out, err
}

// kept is how many requests the fake upstream remembers: more than one step makes.
const kept = 64

// played is what came of a run, with the tokens that its agent wrote.
type played struct {
	judge.Report
	written int
}

// play plays a run on a stage of its own, with a cold prompt cache.
func (p plan) play(ctx context.Context, run replay.Run, count func([]byte) int) (out played, err error) {
	cfg := *config.Default()
	cfg.Condenser = p.condenser
	info, _ := cfg.ModelFor(judge.Model)
	info.Price = cmp.Or(p.price, model.Price{Input: 1, CachedInput: 0.1, CacheWrite: 1.25, Output: outputPrice}) // what condenses by price goes by this
	cfg.Models = map[string]model.Info{judge.Model: info}
	stage, err := judge.NewStage(cfg, fakeupstream.Options{Keep: kept, CountTokens: count}, nil)
	if err != nil {
		return played{}, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	seen := 0
	var refused []error
	look := func() { // takes in the requests since the last look, the summariser's included
		for _, r := range stage.Upstream.Requests() {
			if r.Index >= seen && r.Refused != nil {
				refused = append(refused, fmt.Errorf("%s: request %d: %w", run.Name, r.Index, r.Refused))
			}
			seen = max(seen, r.Index+1)
		}
	}
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(run.Name)))
	report, err := judge.Play(ctx, run, judge.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: judge.Model,
		Headers: map[string][]string{"X-Dewpoint-Session": {id[:16]}},
		Expect:  judge.Expectations{Summarisers: []string{judge.Summariser}}, Each: func(judge.Step) { look() },
	})
	if look(); refused != nil {
		err = nil // a refusal ended it, and is counted
	}
	report.Violations = refused // the judge holds every condenser to what rolling summaries promise; here refusals count
	return played{report, said(run, count)}, err
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

// said is the tokens of what the agent says in a run.
func said(run replay.Run, count func([]byte) int) int {
	total := count(run.Final)
	for _, m := range run.Messages {
		if roleOf(m) == "assistant" {
			total += count(m)
		}
	}
	return total
}

func (r *row) add(o played) {
	r.condensed += o.Condensed
	u := use{sent: o.Sent, forwarded: o.Forwarded, cached: o.Cached, own: o.Own, answers: o.OwnCalls, written: o.written, steps: o.Steps}
	r.runs[o.Name] = u
	r.use.add(u)
	r.refused = append(r.refused, o.Violations...)
}

// write writes the table. The first row is what the others are compared with.
func write(w io.Writer, rows []row) {
	fmt.Fprintf(w, "%d model calls; %s tokens sent by the agents.\n\n", rows[0].use.steps, millions(rows[0].use.sent))
	fmt.Fprint(w, "| condenser | refused | forwarded | of it cached | summariser calls | summariser tokens |")
	for _, p := range prices() {
		fmt.Fprintf(w, " %s |", p.name)
	}
	fmt.Fprintf(w, " runs that lose, %s |", prices()[losing].name)
	fmt.Fprintln(w, "\n|---|---|---|---|---|---|"+strings.Repeat("---|", len(prices())+1))
	for _, r := range rows {
		cached := 100 * float64(r.use.cached) / float64(max(r.use.forwarded, 1))
		fmt.Fprintf(w, "| %s | %d | %s | %.1f%% | %d | %s |", r.name, len(r.refused), millions(r.use.forwarded), cached, r.use.answers, millions(r.use.own))
		for _, p := range prices() {
			fmt.Fprintf(w, " %s |", p.saving(r.use, rows[0].use))
		}
		fmt.Fprintf(w, " %d |\n", r.losers(rows[0]))
	}
	byLength(w, rows)
}

// byLength writes what each row saves in short, middle and long runs, and what the run costs that fares worst.
func byLength(w io.Writer, rows []row) {
	p := prices()[common]
	fmt.Fprintf(w, "\n### By length of the run, %s\n\n| condenser |", p.name)
	for _, b := range retention.Bands() {
		fmt.Fprintf(w, " %s, %d from %d steps |", b.Name, len(rows[0].in(b)), b.From)
	}
	fmt.Fprintln(w, " worst run |\n|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		worst, least := "", math.Inf(1)
		for _, b := range retention.Bands() {
			var own, base use
			for _, name := range r.in(b) {
				u, whole := r.runs[name], rows[0].runs[name]
				own.add(u)
				base.add(whole)
				if saved := 1 - p.cost(u)/p.cost(whole); saved < least {
					least, worst = saved, p.saving(u, whole)
				}
			}
			fmt.Fprintf(w, " %s |", p.saving(own, base))
		}
		fmt.Fprintf(w, " %s |\n", worst)
	}
}

// in names the runs of a band.
func (r *row) in(b retention.Band) (names []string) {
	for name, u := range r.runs {
		if b.Holds(u.steps) {
			names = append(names, name)
		}
	}
	return names
}

// common is the price that most providers have, and losing the one at which runs that cost more than without condensing are counted.
const (
	common = 1
	losing = 2
)

// losers counts the runs that cost more than under another row, by more than the noise of a few tokens.
func (r *row) losers(base row) int {
	p, n := prices()[losing], 0
	for name, u := range r.runs {
		if p.cost(u) > 1.001*p.cost(base.runs[name]) {
			n++
		}
	}
	return n
}

func millions(tokens int) string { return fmt.Sprintf("%.2fM", float64(tokens)/1e6) }

// refused is an error if upstream refused anything.
func refused(rows []row) error {
	var all []error
	for _, r := range rows {
		for _, err := range r.refused {
			all = append(all, fmt.Errorf("refused under %s: %w", r.name, err))
		}
	}
	return errors.Join(all...)
}

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
