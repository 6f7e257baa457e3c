package bench

import (
	"fmt"
	"io"
	"math"
	"time"
)

const (
	budgetFirst = time.Millisecond      // added to the first token
	budgetGone  = 50 * time.Millisecond // from a client's leaving to upstream's being told
	budgetDelay = 2                     // of a chunk one way, over nginx's p50
)

func (s *Streaming) markdown(w io.Writer) {
	fmt.Fprintf(w, "### Streams\n\nAn event each %v, one way from the upstream's write to the client's read. Budget: p50 within %d times nginx's.\n\n", s.Pause, budgetDelay)
	var rows [][]string
	for _, d := range s.Delays {
		for _, t := range d.Targets {
			row := []string{fmt.Sprint(d.Streams), t.Name, ms(t.P50), ms(t.P99), "–", "–"}
			if t.Ratio.Median > 0 {
				row[4] = t.Ratio.String()
			}
			if isDewpoint(t.Name) && t.Ratio.Median > 0 {
				row[5] = verdict(t.Ratio.Median, budgetDelay)
			}
			rows = append(rows, row)
		}
	}
	table(w, []string{"streams", "", "p50", "p99", "p50 over nginx's", ""}, rows)
	s.firsts(w)
	s.gone(w)
}

func isDewpoint(name string) bool { return name == nameEmbedded || name == nameRedis }

func (s *Streaming) firsts(w io.Writer) {
	fmt.Fprintf(w, "Time to the first token, known sessions, and what is added to the upstream's own. Budget: %v.\n\n", budgetFirst)
	var rows [][]string
	for _, f := range s.First {
		for _, t := range f.Targets {
			row := []string{sizeName(f.Size), t.Name, ms(t.P50), t.Added.String() + " ms", "–"}
			if isDewpoint(t.Name) {
				row[4] = verdict(t.Added.Median, milliseconds(budgetFirst))
			}
			rows = append(rows, row)
		}
	}
	table(w, []string{"body", "", "p50", "added", ""}, rows)
}

func (s *Streaming) gone(w io.Writer) {
	fmt.Fprintf(w, "From a client's leaving to the upstream's being told. Budget: %v, always.\n\n", budgetGone)
	var rows [][]string
	for _, g := range s.Gone {
		row := []string{g.Phase, g.Name, ms(g.P50), ms(g.Worst), fmt.Sprintf("%d of %d", g.Untold, g.Tries), "–"}
		if isDewpoint(g.Name) {
			row[5] = verdict(milliseconds(g.Worst)+float64(g.Untold)*math.MaxInt32, milliseconds(budgetGone))
		}
		rows = append(rows, row)
	}
	table(w, []string{"the client leaves", "", "p50", "worst", "not told within a second", ""}, rows)
}

func (g *Growth) markdown(w io.Writer) {
	if len(g.Points) == 0 {
		return
	}
	last := g.Points[len(g.Points)-1]
	fmt.Fprintf(w, "### Growth\n\nOne session grows to %d messages, %s. Each point is the p50 of a few steps of two messages. "+
		"Traffic is of one step; Redis counts the commands inside a script, too.\n\n", last.Messages, sizeName(last.Bytes/1000*1000))
	names := sorted(last.P50)
	head := append([]string{"messages", "body"}, names...)
	head = append(head, "Redis: commands", "bytes in", "bytes out", "embedded: written")
	var rows [][]string
	for _, p := range g.Points {
		row := []string{fmt.Sprint(p.Messages), fmt.Sprintf("%.2f MB", float64(p.Bytes)/1e6)}
		for _, n := range names {
			row = append(row, ms(p.P50[n]))
		}
		rows = append(rows, append(row, number(p.Commands), fmt.Sprintf("%.0f", p.In), fmt.Sprintf("%.0f", p.Out), fmt.Sprintf("%.0f KB", p.Disk/1000)))
	}
	table(w, head, rows)
	g.lines(w, names)
	g.colds(w)
}

func (g *Growth) lines(w io.Writer, names []string) {
	fmt.Fprint(w, "The straight lines through these points:\n\n")
	var rows [][]string
	for _, n := range names {
		whole, added := g.Whole[n], g.Added[n]
		rows = append(rows, []string{
			n, number(whole.Slope) + " ms/MB", number(added.Slope) + " ms/MB", number(added.Intercept) + " ms", fmt.Sprintf("%.3f", added.R2),
		})
	}
	table(w, []string{"", "p50", "added to the bare proxy's", "at length 0", "R²"}, rows)
}

func (g *Growth) colds(w io.Writer) {
	if len(g.Cold) == 0 {
		return
	}
	fmt.Fprint(w, "A fresh replica over the same Redis gets that session for the first time; `next` is the step after it:\n\n")
	var rows [][]string
	for _, c := range g.Cold {
		rows = append(rows, []string{
			fmt.Sprint(c.Messages), ms(c.Took), ms(c.Next), number(c.Commands), fmt.Sprintf("%.0f", c.In), fmt.Sprintf("%.0f", c.Out),
		})
	}
	table(w, []string{"messages", "took", "next", "Redis commands", "bytes in", "bytes out"}, rows)
}

func (t *Tail) markdown(w io.Writer) {
	fmt.Fprintf(w, "### Tails\n\nSmall requests of known sessions over one connection. The limit of p99 is %d times the budget of p50: of the bare proxy's p50, alone.\n\n", tailFactor)
	var rows [][]string
	for _, r := range t.Rows {
		row := []string{r.Situation, r.Name, sizeName(r.Size), ms(r.P50), ms(r.P99), ms(r.Worst), ms(r.Limit), "–"}
		if r.Limit > 0 {
			row[7] = verdict(float64(r.P99), float64(r.Limit))
		}
		rows = append(rows, row)
	}
	table(w, []string{"", "", "body", "p50", "p99", "worst", "limit of p99", ""}, rows)
}

func (m *Memory) markdown(w io.Writer) {
	fmt.Fprint(w, "### Memory\n\nResident memory of a fresh Dewpoint with the embedded store: before, at its peak, at the end with all connections open, and some seconds "+
		"after they were closed. Meanwhile another client makes small requests.\n\n")
	var rows [][]string
	for _, r := range m.Rows {
		each := fmt.Sprintf("%.1f KB", float64(r.Held-r.Before)/1024/float64(max(r.Conns, 1)))
		rows = append(rows, []string{
			r.Situation, fmt.Sprint(r.Conns), mb(r.Before), mb(r.Peak), mb(r.Held), each, mb(r.After), fmt.Sprintf("%d, p99 %s", r.Served, ms(r.P99)),
		})
	}
	table(w, []string{"", "connections", "before", "peak", "held", "a connection", "after", "others served"}, rows)
	o := m.Overload
	fmt.Fprintf(w, "Overload, `limits.bytes_in_flight: %s`: %d connections send %s twice. %d served, %d refused (429 or 503 with `Retry-After` and an error of OpenAI's shape), "+
		"%d anything else; peak %s.\n\n", o.Budget, o.Conns, sizeName(o.Size), o.Served, o.Refused, o.Other, mb(o.Peak))
	fmt.Fprint(w, "Go's own limits, as the program reports them under them, and its peak after 32 first seen histories of 1 MB over 8 connections:\n\n")
	rows = nil
	for _, l := range m.Runtime {
		limit := "none"
		if l.Limit < math.MaxInt64/2 {
			limit = mb(int64(l.Limit))
		}
		rows = append(rows, []string{"`" + l.Env + "`", number(l.Procs), limit, mb(l.Peak)})
	}
	table(w, []string{"environment", "GOMAXPROCS", "memory limit", "peak"}, rows)
}
