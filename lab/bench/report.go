package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	budgetAPI       = 1.3                   // of p50 over that of Chat Completions, measured in turn
	budgetAdded     = 2                     // of what is added to a known session, over what the relay adds
	budgetGone      = 50 * time.Millisecond // from a client's leaving to upstream's being told
	budgetNeighbour = 3                     // of a client's p99 while others misbehave, over its p99 before
	budgetDelay     = 2                     // of a chunk one way, over nginx's p50
	cpuConns        = 8                     // over which processor time is measured
)

// budgetOf is the ratio to the bare proxy that p50 may have over one connection; 0: there is no budget.
func budgetOf(kind Kind, name string, size int) float64 {
	return bySize(map[Kind]map[string][]float64{
		Known:     {nameEmbedded: {7.5, 4.5, 4.5, 4}, nameRedis: {12, 9, 5, 4.5}},
		FirstSeen: {nameEmbedded: {13, 20, 45, 40}, nameRedis: {20, 28, 65, 55}},
	}[kind][name], size)
}

// cpuBudgetOf is the ratio that the processor time of a request may have, of known sessions; 0: there is no budget.
func cpuBudgetOf(c Cell, name string) float64 {
	if c.Kind != Known || c.Conns != cpuConns || !isDewpoint(name) {
		return 0
	}
	return bySize([]float64{14, 12, 8, 9}, c.Size)
}

func bySize(of []float64, size int) float64 {
	if i := slices.Index(sizes(), size); i >= 0 && i < len(of) {
		return of[i]
	}
	return 0
}

func isDewpoint(name string) bool { return name == nameEmbedded || name == nameRedis }

// Markdown writes all tables of a run.
func (r *Result) Markdown(w io.Writer) {
	r.machine(w)
	if len(r.Cells) > 0 {
		r.budgets(w)
		r.added(w)
		r.cpuBudgets(w)
		r.protocols(w)
	}
	if r.Streaming != nil {
		r.Streaming.markdown(w)
	}
	if r.Memory != nil {
		r.Memory.markdown(w)
	}
	if r.Waits != nil {
		writeWaits(w, r.Waits)
	}
}

func (r *Result) machine(w io.Writer) {
	fmt.Fprintf(w, "### Machine\n\n%s. The run took %s. Load average at the start: %s.", r.Machine, r.Took.Round(time.Second), r.Load)
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
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
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

// rows makes a row for each target of each cell, by kind, size and connections; nil: it has none.
func (r *Result) rows(row func(c CellResult, t TargetResult) []string) (rows [][]string) {
	kinds := []Kind{Known, FirstSeen}
	cells := slices.Clone(r.Cells)
	slices.SortStableFunc(cells, func(a, b CellResult) int {
		return slices.Compare([]int{slices.Index(kinds, a.Kind), a.Size, a.Conns}, []int{slices.Index(kinds, b.Kind), b.Size, b.Conns})
	})
	for _, c := range cells {
		for _, t := range c.Targets {
			if one := row(c, t); one != nil {
				rows = append(rows, one)
			}
		}
	}
	return rows
}

// budgets writes what has a budget, next to nginx.
func (r *Result) budgets(w io.Writer) {
	fmt.Fprint(w, "### The budget\n\nRatio of the p50 to the bare proxy's in the same block: median of the blocks [lowest, highest].\n\n")
	table(w, []string{"request", "body", "", "bare p50", "p50", "ratio", "budget", "", "nginx's ratio"}, r.rows(func(c CellResult, t TargetResult) []string {
		budget := budgetOf(c.Kind, t.Name, c.Size)
		if budget == 0 || c.Conns != 1 || c.API != "" {
			return nil
		}
		nginx := "–"
		if n, ok := c.find(nameNginx); ok {
			nginx = number(n.Ratio.Median)
		}
		return []string{string(c.Kind), sizeName(c.Size), t.Name, ms(c.Targets[0].P50), ms(t.P50), t.Ratio.String(), number(budget), verdict(t.Ratio.Median, budget), nginx}
	}))
}

// added writes what is added to a request that goes to upstream without a proxy, next to what a relay on Go's net/http adds.
func (r *Result) added(w io.Writer) {
	rows := r.rows(func(c CellResult, t TargetResult) []string {
		direct, _ := c.find(nameDirect)
		relay, ok := c.find(nameRelay)
		if !ok || !isDewpoint(t.Name) || c.Kind != Known || c.Conns != 1 || c.API != "" {
			return nil
		}
		budget, met := "–", "–"
		if t.Name == nameEmbedded && (c.Size == 100_000 || c.Size == middleSize) {
			budget, met = number(budgetAdded), verdict(t.Added.Median, budgetAdded)
		}
		return []string{sizeName(c.Size), t.Name, ms(direct.P50), ms(relay.P50 - direct.P50), ms(t.P50 - direct.P50), t.Added.String(), budget, met}
	})
	if len(rows) > 0 {
		fmt.Fprint(w, "What is added to the p50 of a request without a proxy, known sessions, one connection. The relay is some fifteen lines on Go's net/http "+
			"that read nothing.\n\n")
		table(w, []string{"body", "", "without", "relay adds", "adds", "over the relay's", "budget", ""}, rows)
	}
}

func (r *Result) cpuBudgets(w io.Writer) {
	rows := r.rows(func(c CellResult, t TargetResult) []string {
		budget := cpuBudgetOf(c.Cell, t.Name)
		if budget == 0 {
			return nil
		}
		return []string{sizeName(c.Size), t.Name, ms(c.Targets[0].CPU), ms(t.CPU), t.CPURatio.String(), number(budget), verdict(t.CPURatio.Median, budget)}
	})
	if len(rows) > 0 {
		fmt.Fprintf(w, "CPU time per request, known sessions, %d connections:\n\n", cpuConns)
		table(w, []string{"body", "", "bare", "", "ratio", "budget", ""}, rows)
	}
}

// protocols writes what the other protocols take, over Chat Completions.
func (r *Result) protocols(w io.Writer) {
	rows := r.rows(func(c CellResult, t TargetResult) []string {
		if c.API == "" || !isDewpoint(t.Name) {
			return nil
		}
		return []string{string(c.API), string(c.Kind), sizeName(c.Size), t.Name, ms(t.P50), t.OverChat.String(), number(budgetAPI), verdict(t.OverChat.Median, budgetAPI)}
	})
	if len(rows) > 0 {
		fmt.Fprint(w, "### Other protocols\n\nRatio of the p50 to that of Chat Completions in the same block, one connection: median of the blocks [lowest, highest].\n\n")
		table(w, []string{"protocol", "request", "body", "", "p50", "over chat", "budget", ""}, rows)
	}
}

func (s *Streaming) markdown(w io.Writer) {
	fmt.Fprintf(w, "### Streams\n\nOne event every %v; time from upstream's write to the client's read. Budget: p50 within %d times nginx's.\n\n", streamPause, budgetDelay)
	var rows [][]string
	for _, d := range s.Delays {
		row := []string{fmt.Sprint(d.Streams), d.Name, ms(d.P50), ms(d.P99), "–", "–"}
		if d.Ratio.Median > 0 {
			row[4] = d.Ratio.String()
			if isDewpoint(d.Name) {
				row[5] = verdict(d.Ratio.Median, budgetDelay)
			}
		}
		rows = append(rows, row)
	}
	table(w, []string{"streams", "", "p50", "p99", "p50 over nginx's", ""}, rows)
	fmt.Fprintf(w, "From a client's disconnect until upstream sees it. Budget: %v, always.\n\n", budgetGone)
	rows = nil
	for _, g := range s.Gone {
		row := []string{g.Phase, g.Name, ms(g.P50), ms(g.Worst), fmt.Sprintf("%d of %d", g.Untold, g.Tries), "–"}
		if isDewpoint(g.Name) {
			row[5] = verdict(milliseconds(g.Worst)+float64(g.Untold)*math.MaxInt32, milliseconds(budgetGone))
		}
		rows = append(rows, row)
	}
	table(w, []string{"the client disconnects", "", "p50", "worst", "not seen within a second", ""}, rows)
}

func (m *Memory) markdown(w io.Writer) {
	fmt.Fprint(w, "### Memory\n\nResident memory of a new Dewpoint process with the embedded store: before, at its peak, at the end with all connections open, and some seconds "+
		"after they were closed. Meanwhile another client makes small requests; budget: their p99 within three times its value before.\n\n")
	var rows [][]string
	for _, r := range m.Rows {
		each := fmt.Sprintf("%.1f KB", float64(r.Held-r.Before)/1024/float64(max(r.Conns, 1)))
		rows = append(rows, []string{
			r.Situation, fmt.Sprint(r.Conns), mb(r.Before), mb(r.Peak), mb(r.Held), each, mb(r.After), fmt.Sprintf("%d, p99 %s", r.Served, ms(r.P99)), ms(r.Quiet),
			verdict(milliseconds(r.P99), budgetNeighbour*milliseconds(r.Quiet)),
		})
	}
	table(w, []string{"", "connections", "before", "peak", "held", "a connection", "after", "others served", "p99 before", ""}, rows)
	o := m.Overload
	fmt.Fprintf(w, "Overload, `limits.bytes_in_flight: %s`: %d connections send %s twice. %d served, %d refused (429 or 503 with `Retry-After` and an error in OpenAI's format), "+
		"%d anything else; peak %s.\n\n", o.Budget, o.Conns, sizeName(o.Size), o.Served, o.Refused, o.Other, mb(o.Peak))
}
