package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Markdown writes all tables of a run.
func (r *Result) Markdown(w io.Writer) {
	r.Machine.markdown(w, r)
	if len(r.Cells) > 0 {
		r.budgets(w)
		r.protocols(w)
	}
	if r.Streaming != nil {
		r.Streaming.markdown(w)
	}
	if r.Memory != nil {
		r.Memory.markdown(w)
	}
	if r.Waits != nil {
		r.Waits.markdown(w)
	}
}

func (m Machine) markdown(w io.Writer, r *Result) {
	fmt.Fprintf(w, "### Machine\n\n%s, %d cores, %s of memory; %s; %s; %s. The run took %s.", m.CPU, m.Cores, m.Memory, m.System, m.Go,
		strings.Join(m.Versions, ", "), r.Took.Round(time.Second))
	if m.Load != "" {
		fmt.Fprintf(w, " Load average when it began: %s.", m.Load)
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(w, " Not measured: %s.", missing)
	}
	if r.Quick {
		fmt.Fprint(w, " This was a quick run: its figures are a first look.")
	}
	fmt.Fprint(w, "\n\n")
}

// table writes a table.
func table(w io.Writer, head []string, rows [][]string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
}

// ms writes a time.
func ms(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return number(milliseconds(d)) + " ms"
}

// number writes three digits, or a whole number.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (s Spread) String() string {
	return fmt.Sprintf("%s [%s, %s]", number(s.Median), number(s.Low), number(s.High))
}

// verdict says whether a figure is within its budget.
func verdict(v, budget float64) string {
	switch {
	case budget == 0:
		return "–"
	case v <= budget:
		return "met"
	}
	return "**not met**"
}

func mb(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/(1<<20)) }

// budgets writes what has a budget, next to nginx.
func (r *Result) budgets(w io.Writer) {
	fmt.Fprint(w, "### The budget\n\nRatio of p50 to the bare proxy's in the same block: the middle of the blocks [least, most].\n\n")
	var rows [][]string
	for _, c := range r.ordered() {
		for _, t := range c.Targets {
			budget := 0.0
			if c.Conns == 1 && c.API == "" {
				budget = budgetOf(c.Kind, t.Name, c.Size)
			}
			if budget == 0 {
				continue
			}
			bare, nginx := c.Targets[0], "–"
			if n, ok := c.find(nameNginx); ok {
				nginx = number(n.Ratio.Median)
			}
			rows = append(rows, []string{
				string(c.Kind), sizeName(c.Size), t.Name, ms(bare.P50), ms(t.P50), t.Ratio.String(), number(budget), verdict(t.Ratio.Median, budget), nginx,
			})
		}
	}
	table(w, []string{"request", "body", "", "bare p50", "p50", "ratio", "budget", "", "nginx's ratio"}, rows)
	r.cpuBudgets(w)
}

func (r *Result) cpuBudgets(w io.Writer) {
	var rows [][]string
	for _, c := range r.ordered() {
		for _, t := range c.Targets {
			if budget := cpuBudgetOf(c.Cell, t.Name); budget > 0 {
				bare := c.Targets[0]
				rows = append(rows, []string{
					sizeName(c.Size), t.Name, ms(bare.CPU), ms(t.CPU), t.CPURatio.String(), number(budget), verdict(t.CPURatio.Median, budget),
				})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "Processor time of a request, known sessions, %d connections:\n\n", cpuConns)
	table(w, []string{"body", "", "bare", "", "ratio", "budget", ""}, rows)
}

// ordered are the cells by kind, size and connections.
func (r *Result) ordered() []CellResult {
	kinds := []Kind{Known, FirstSeen}
	out := slices.Clone(r.Cells)
	slices.SortStableFunc(out, func(a, b CellResult) int {
		for _, d := range []int{slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind), a.Size - b.Size, a.Conns - b.Conns} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return out
}
