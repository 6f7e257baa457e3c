package ask

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
)

// step is what was found at one step, in pairs of answers that are the same.
type step struct {
	run   string
	whole float64 // 0 or 1: the two answers to the whole history
	view  float64 // share of the four pairs of an answer to the whole history and one to the view
}

// tally holds the steps of a setting.
type tally struct{ steps []step }

func (t *tally) add(run string, whole, view [2]Action) {
	s := step{run: run}
	if whole[0].Same(whole[1]) {
		s.whole = 1
	}
	for _, w := range whole {
		for _, v := range view {
			if w.Same(v) {
				s.view += 0.25
			}
		}
	}
	t.steps = append(t.steps, s)
}

// Result is how often the next action is the same under a setting.
type Result struct {
	Runs, Steps int
	Whole, View float64 // shares: of two answers to the whole history, and of one to it and one to the view
	Lost        Interval
}

// Interval is by how much View is lower than Whole, with a 95% interval over runs.
type Interval struct{ Low, Mean, High float64 }

// Results returns the results by setting.
func (a *Asker) Results() (all []Result) {
	for _, t := range a.tally {
		all = append(all, t.result())
	}
	return all
}

// draws is how often runs are drawn anew for an interval.
const draws = 2000

// result resamples runs, not steps: the steps of one run resemble each other.
func (t *tally) result() (r Result) {
	byRun := map[string][]step{}
	var runs []string
	for _, s := range t.steps {
		if byRun[s.run] == nil {
			runs = append(runs, s.run)
		}
		byRun[s.run] = append(byRun[s.run], s)
	}
	r.Runs, r.Steps = len(runs), len(t.steps)
	if r.Steps == 0 {
		return r
	}
	r.Whole, r.View = means(t.steps)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
	lost := make([]float64, draws)
	for i := range lost {
		var drawn []step
		for range runs {
			drawn = append(drawn, byRun[runs[random.IntN(len(runs))]]...)
		}
		whole, view := means(drawn)
		lost[i] = whole - view
	}
	slices.Sort(lost)
	r.Lost = Interval{lost[draws/40], r.Whole - r.View, lost[draws-1-draws/40]}
	return r
}

func means(steps []step) (whole, view float64) {
	for _, s := range steps {
		whole += s.whole
		view += s.view
	}
	n := float64(len(steps))
	return whole / n, view / n
}

// minRuns is the number of runs below which an interval says nothing.
const minRuns = 10

// Write writes a table with a line for each setting.
func (a *Asker) Write(names []string, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nnext action by %s\truns\tsteps\tsame twice\tsame as with the whole history\tpoints lost\t95%%\t\n", a.Model.Name)
	for i, r := range a.Results() {
		between := fmt.Sprintf("%.0f to %.0f", points(r.Lost.Low), points(r.Lost.High))
		if r.Runs < minRuns {
			between = fmt.Sprintf("needs %d runs", minRuns)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f%%\t%.0f%%\t%.0f\t%s\t\n", names[i], r.Runs, r.Steps, 100*r.Whole, 100*r.View, points(r.Lost.Mean), between)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nThe questions took %d tokens of input and %d of output.\n", a.used.Input, a.used.Output)
	return err //nolint:wrapcheck // of the caller's own writer
}

// points returns a difference of shares in percentage points, without a minus before zero.
func points(share float64) float64 { return math.Round(100*share) + 0 }
