// Package retention measures what condensers keep. It replays recorded runs moment by moment, condenses the history before
// each action to an equal budget of tokens, and looks which of the references that the action uses (paths, URLs,
// identifiers, numbers, error names, quoted literals) are still to be seen. It measures the retention of references, never
// whether a task succeeds.
package retention

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// Options say how much is measured.
type Options struct {
	Shares  []float64 // budgets, as shares of the history's tokens
	Moments int       // of a run at most
	Minimum int       // tokens of a history
	Counter Counter   // may be used concurrently

	Statements bool // the actions are those whose statements rely on earlier ones, not those with references
}

// Shares are the budgets that are measured.
func Shares() []float64 { return []float64{0.05, 0.10, 0.20, 0.40} }

// Result is what was counted.
type Result struct {
	Strategies []Strategy
	Shares     []float64
	Runs       int
	Minimum    int          // tokens of a history
	agents     []string     // of the runs
	counts     [][][]Counts // by strategy, share and run
}

// Measure measures strategies on runs, several runs at a time.
func Measure(ctx context.Context, runs []replay.Run, strategies []Strategy, o Options) (*Result, error) {
	r := &Result{Strategies: strategies, Shares: o.Shares, Runs: len(runs), Minimum: o.Minimum, counts: make([][][]Counts, len(strategies))}
	for s := range r.counts {
		r.counts[s] = make([][]Counts, len(o.Shares))
		for b := range r.counts[s] {
			r.counts[s][b] = make([]Counts, len(runs))
		}
	}
	for _, run := range runs {
		agent, _, _ := strings.Cut(run.Name, "--")
		r.agents = append(r.agents, agent)
	}
	var running errgroup.Group
	running.SetLimit(runtime.GOMAXPROCS(0))
	for i, run := range runs {
		running.Go(func() error { return r.run(ctx, i, run, o) })
	}
	return r, running.Wait()
}

// run measures all strategies on run i.
func (r *Result) run(ctx context.Context, i int, recorded replay.Run, o Options) error {
	read, err := newRun(recorded, o.Counter)
	if err != nil {
		return err
	}
	// the same moments at every budget
	counts := (*moment).refers
	if o.Statements {
		counts = (*moment).relies
	}
	moments := read.moments(o.Minimum, slices.Min(o.Shares), o.Moments, counts)
	for s, strategy := range r.Strategies {
		for b, share := range o.Shares {
			view := strategy.start(read)
			for _, m := range moments {
				budget := int(share * float64(m.total))
				if err := ctx.Err(); err != nil {
					return err
				}
				seen, err := view(m, budget)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", recorded.Name, strategy.Name, err)
				}
				r.counts[s][b][i].Add(m.score(seen, budget))
			}
		}
	}
	return nil
}
