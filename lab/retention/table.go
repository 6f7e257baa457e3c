package retention

import (
	"fmt"
	"io"
	"math"
	"slices"
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
		{"RR_far", func(c Counts) float64 { return float64(c.FarRecalled) / float64(c.Far) }},
	}
}

// saidMetrics are what is looked at where an action's statements rely on earlier ones.
func saidMetrics() []metric {
	return []metric{
		{"DS", func(c Counts) float64 { return float64(c.Stated) / float64(c.Relied) }},
		{"DS_far", func(c Counts) float64 { return float64(c.FarStated) / float64(c.FarRelied) }},
		metrics()[1],
	}
}

// total sums up runs.
func total(counts []Counts, runs []int) (sum Counts) {
	for _, i := range runs {
		sum.Add(counts[i])
	}
	return sum
}

// total sums up a strategy at a budget over runs.
func (r *Result) total(strategy, share int, runs []int) Counts {
	return total(r.counts[strategy][share], runs)
}

// interval writes a figure with its interval, of a metric that is asked for by strategy and runs drawn.
func (r *Result) interval(m metric, share int, figure func(of func(strategy int) float64) float64) string {
	return percent(bootstrap(r.Runs, func(drawn []int) float64 {
		return figure(func(strategy int) float64 { return m.ratio(r.total(strategy, share, drawn)) })
	}))
}

// Markdown writes the tables: one for each budget, those of what `excerpts` and the default have more, and one by agent.
func (r *Result) Markdown(w io.Writer) {
	for b, share := range r.Shares {
		r.budget(w, b, share)
	}
	r.leads(w, "excerpts")
	r.leads(w, Default)
	r.ByAgent(w, len(r.Shares)/2)
}

func (r *Result) budget(w io.Writer, b int, share float64) {
	c, reached := r.total(0, b, r.all()), 0
	for _, run := range r.counts[0][b] {
		reached += one(run.Moments > 0)
	}
	fmt.Fprintf(w, "### %.0f%% of the history\n\n", 100*share)
	fmt.Fprintf(w, "%d actions in %d runs, %d references, %d of them not in the latest exchange, %d from more than %d units ago.\n\n",
		c.Moments, reached, c.Used, c.Memory, c.Far, farUnits)
	fmt.Fprintln(w, "| strategy | RR | RR_mem | RR_ctx | RR_far | view | over |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for s, strategy := range r.Strategies {
		c := r.total(s, b, r.all())
		cells := make([]string, 0, len(metrics()))
		for _, m := range metrics() {
			cells = append(cells, r.interval(m, b, func(of func(int) float64) float64 { return of(s) }))
		}
		fmt.Fprintf(w, "| %s | %s | %.1f%% | %.0f%% |\n", label(strategy), strings.Join(cells, " | "),
			100*c.Share/float64(c.Moments), 100*float64(c.Over)/float64(c.Moments))
	}
	fmt.Fprintln(w)
}

// Said writes a table of the statements of the agent that are to be seen, at each budget.
func (r *Result) Said(w io.Writer) {
	c, reached := r.total(0, 0, r.all()), 0
	for _, run := range r.counts[0][0] {
		reached += one(run.Moments > 0)
	}
	fmt.Fprintf(w, "%d actions in %d runs rely on %d earlier statements, %d of them made more than %d units before; %d references.\n\n| strategy |",
		c.Moments, reached, c.Relied, c.FarRelied, farUnits, c.Memory)
	for _, share := range r.Shares {
		for _, m := range saidMetrics() {
			fmt.Fprintf(w, " %s, %.0f%% |", m.name, 100*share)
		}
	}
	fmt.Fprintln(w, "\n|---|"+strings.Repeat("---|", len(r.Shares)*len(saidMetrics())))
	for s, strategy := range r.Strategies {
		fmt.Fprintf(w, "| %s |", label(strategy))
		for b := range r.Shares {
			for _, m := range saidMetrics() {
				fmt.Fprintf(w, " %.1f |", 100*m.ratio(r.total(s, b, r.all())))
			}
		}
		fmt.Fprintln(w)
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

func (r *Result) all() []int { return upTo(r.Runs) }

// leads writes how much a strategy has more of RR_mem than the baselines, and how far it gets from random to the oracle.
func (r *Result) leads(w io.Writer, name string) {
	m := metrics()[1]
	fmt.Fprintf(w, "### What `%s` has more, in points of %s\n\n| more than |", name, m.name)
	for _, share := range r.Shares {
		fmt.Fprintf(w, " %.0f%% |", 100*share)
	}
	fmt.Fprintln(w, "\n|---|"+strings.Repeat("---|", len(r.Shares)))
	own, random, oracle := r.index(name), r.index("random"), r.index("oracle")
	row := func(label string, figure func(of func(strategy int) float64) float64) {
		fmt.Fprintf(w, "| %s |", label)
		for b := range r.Shares {
			fmt.Fprintf(w, " %s |", r.interval(m, b, figure))
		}
		fmt.Fprintln(w)
	}
	for s, strategy := range r.Strategies {
		if strategy.Baseline {
			row(label(strategy), func(of func(int) float64) float64 { return of(own) - of(s) }) // run by run the same
		}
	}
	row("share of the way from random to oracle", func(of func(int) float64) float64 { return (of(own) - of(random)) / (of(oracle) - of(random)) })
	fmt.Fprintln(w)
}

func agentRows() []string { return []string{"tail only", "random", "excerpts", Default, "oracle"} }

// ByAgent writes the figures of some strategies for each agent's runs.
func (r *Result) ByAgent(w io.Writer, share int) {
	m, names := metrics()[1], agentRows()
	fmt.Fprintf(w, "### %s by agent, at %.0f%%, from %d tokens on\n\n| agent | runs | references |", m.name, 100*r.Shares[share], r.Minimum)
	for _, name := range names {
		fmt.Fprintf(w, " %s |", label(r.Strategies[r.index(name)]))
	}
	fmt.Fprintln(w, "\n|---|---|---|"+strings.Repeat("---|", len(names)))
	line := func(label string, of func(agent string) bool) {
		var runs []int
		for i := range r.agents {
			if of(r.agents[i]) && r.counts[0][share][i].Memory > 0 {
				runs = append(runs, i)
			}
		}
		if len(runs) == 0 {
			return
		}
		fmt.Fprintf(w, "| %s | %d | %d |", label, len(runs), r.total(0, share, runs).Memory)
		for _, name := range names {
			fmt.Fprintf(w, " %.1f |", 100*m.ratio(r.total(r.index(name), share, runs)))
		}
		fmt.Fprintln(w)
	}
	for _, agent := range slices.Compact(slices.Sorted(slices.Values(r.agents))) {
		line(agent, func(a string) bool { return a == agent })
	}
	line("**coding**", func(a string) bool { return !talks(a) })
	line("**dialogue**", talks)
	fmt.Fprintln(w)
}

// talks reports whether an agent talks to customers. All others that were recorded write code.
func talks(agent string) bool { return strings.HasPrefix(agent, "tau") }

func (r *Result) index(name string) int {
	for s := range r.Strategies {
		if r.Strategies[s].Name == name {
			return s
		}
	}
	return 0
}
