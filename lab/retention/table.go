package retention

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// metric is one of the recalls.
type metric struct {
	name  string
	ratio func(c Counts) float64 // no number if nothing was counted
}

func metrics() []metric {
	return []metric{
		{"RR", func(c Counts) float64 { return float64(c.Kept) / float64(c.Used) }},
		{"RR_mem", func(c Counts) float64 { return float64(c.Recalled) / float64(c.Memory) }},
		{"RR_ctx", func(c Counts) float64 { return float64(c.Context) / float64(c.Memory) }},
	}
}

// total sums up a strategy at a budget over runs.
func (r *Result) total(strategy, share int, runs []int) Counts {
	var c Counts
	for _, i := range runs {
		c.Add(r.counts[strategy][share][i])
	}
	return c
}

// recall is a strategy's figure at a budget.
func (r *Result) recall(m metric, strategy, share int) Interval {
	return bootstrap(r.Runs, func(drawn []int) float64 { return m.ratio(r.total(strategy, share, drawn)) })
}

// lead is how much more of a metric one strategy has than another, run by run the same.
func (r *Result) lead(m metric, strategy, other, share int) Interval {
	return bootstrap(r.Runs, func(drawn []int) float64 {
		return m.ratio(r.total(strategy, share, drawn)) - m.ratio(r.total(other, share, drawn))
	})
}

// Markdown writes the tables: one for each budget, and one of the default's lead over the baselines.
func (r *Result) Markdown(w io.Writer) {
	for b, share := range r.Shares {
		r.budget(w, b, share)
	}
	r.leads(w)
}

func (r *Result) budget(w io.Writer, b int, share float64) {
	c := r.total(0, b, r.all())
	fmt.Fprintf(w, "### %.0f%% of the history\n\n", 100*share)
	fmt.Fprintf(w, "%d actions in %d runs, %d references, %d of them not in the latest exchange.\n\n",
		c.Moments, r.reached(b), c.Used, c.Memory)
	fmt.Fprintln(w, "| strategy | RR | RR_mem | RR_ctx | view | over |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for s, strategy := range r.Strategies {
		c := r.total(s, b, r.all())
		cells := make([]string, 0, len(metrics()))
		for _, m := range metrics() {
			cells = append(cells, percent(r.recall(m, s, b)))
		}
		fmt.Fprintf(w, "| %s | %s | %.1f%% | %.0f%% |\n", label(strategy), strings.Join(cells, " | "),
			100*c.Share/float64(c.Moments), 100*float64(c.Over)/float64(c.Moments))
	}
	fmt.Fprintln(w)
}

// label marks baselines.
func label(s Strategy) string {
	if s.Baseline {
		return "*" + s.Name + "*"
	}
	return "`" + s.Name + "`"
}

func percent(v Interval) string {
	if math.IsNaN(v.Value) {
		return "–"
	}
	return fmt.Sprintf("%.1f [%.1f, %.1f]", 100*v.Value, 100*v.Low, 100*v.High)
}

// reached counts the runs that have a moment at a budget.
func (r *Result) reached(share int) int {
	n := 0
	for _, c := range r.counts[0][share] {
		n += one(c.Moments > 0)
	}
	return n
}

func (r *Result) all() []int {
	out := make([]int, r.Runs)
	for i := range out {
		out[i] = i
	}
	return out
}

// leads writes how much the default has more than each baseline but the oracle.
func (r *Result) leads(w io.Writer) {
	fmt.Fprintf(w, "### What `%s`, the default, has more, in points\n\n", Default)
	fmt.Fprint(w, "| more than |")
	for _, m := range metrics()[1:] {
		for _, share := range r.Shares {
			fmt.Fprintf(w, " %s %.0f%% |", m.name, 100*share)
		}
	}
	fmt.Fprintln(w, "\n|---|"+strings.Repeat("---|", 2*len(r.Shares)))
	for s, strategy := range r.Strategies {
		if !strategy.Baseline {
			continue
		}
		fmt.Fprintf(w, "| %s |", label(strategy))
		for _, m := range metrics()[1:] {
			for b := range r.Shares {
				fmt.Fprintf(w, " %s |", percent(r.lead(m, r.index(Default), s, b)))
			}
		}
		fmt.Fprintln(w)
	}
}

func (r *Result) index(name string) int {
	for s := range r.Strategies {
		if r.Strategies[s].Name == name {
			return s
		}
	}
	return 0
}
