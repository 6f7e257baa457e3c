package bench

import (
	"fmt"
	"io"
	"math"
	"time"
)

const (
	budgetGone      = 50 * time.Millisecond // from a client's leaving to upstream's being told
	budgetNeighbour = 3                     // of a client's p99 while others misbehave, over its p99 before
	budgetDelay     = 2                     // of a chunk one way, over nginx's p50
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
	s.gone(w)
}

func isDewpoint(name string) bool { return name == nameEmbedded || name == nameRedis }

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

func (m *Memory) markdown(w io.Writer) {
	fmt.Fprint(w, "### Memory\n\nResident memory of a fresh Dewpoint with the embedded store: before, at its peak, at the end with all connections open, and some seconds "+
		"after they were closed. Meanwhile another client makes small requests; budget: their p99 within three times what it was before.\n\n")
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
	fmt.Fprintf(w, "Overload, `limits.bytes_in_flight: %s`: %d connections send %s twice. %d served, %d refused (429 or 503 with `Retry-After` and an error of OpenAI's shape), "+
		"%d anything else; peak %s.\n\n", o.Budget, o.Conns, sizeName(o.Size), o.Served, o.Refused, o.Other, mb(o.Peak))
}
