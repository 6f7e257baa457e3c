package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/lab/plot"
)

// HistoryPlot draws a step's time, and what is added to the bare proxy's, against the length of its history; an SVG.
func (g *Growth) HistoryPlot() []byte {
	whole := plot.Panel{Title: "p50 of a step, ms", XLabel: "history, MB"}
	added := plot.Panel{Title: "added to the bare proxy's p50, ms", XLabel: "history, MB"}
	var f plot.Figure
	longest, most := 0.0, 0.0
	for i, name := range g.names() {
		l := line(i, name)
		f.Legend = append(f.Legend, l)
		w, a := plot.Curve{Line: l}, plot.Curve{Line: l}
		for _, p := range g.Points {
			x, y := float64(p.Bytes)/1e6, milliseconds(p.P50[name])
			longest, most = max(longest, x), max(most, y)
			w.Points = append(w.Points, plot.Point{X: x, Y: y})
			a.Points = append(a.Points, plot.Point{X: x, Y: max(y-milliseconds(p.P50[nameBare]), 0)})
		}
		whole.Curves, added.Curves = append(whole.Curves, w), append(added.Curves, a)
	}
	for _, p := range []*plot.Panel{&whole, &added} {
		p.X, p.Y = linear(longest), linear(most)
		f.Panels = append(f.Panels, *p)
	}
	return f.SVG()
}

func (g *Growth) names() []string {
	if len(g.Points) == 0 {
		return nil
	}
	return sorted(g.Points[0].P50)
}

// ConnectionsPlot draws the ratio of p50 to the bare proxy's against the number of connections, for known sessions; an SVG.
func (r *Result) ConnectionsPlot() []byte {
	var f plot.Figure
	for _, size := range sizes() {
		p := plot.Panel{Title: "p50 over the bare proxy's, " + sizeName(size), XLabel: "connections", X: plot.Axis{Log: true}}
		most := 1.0
		for _, c := range r.ordered() {
			if c.Kind != Known || c.Stream || c.Size != size {
				continue
			}
			p.X.Ticks = append(p.X.Ticks, plot.Tick{At: float64(c.Conns), Label: fmt.Sprint(c.Conns)})
			for i, t := range c.Targets {
				if len(p.Curves) <= i {
					p.Curves = append(p.Curves, plot.Curve{Line: line(i, t.Name)})
				}
				p.Curves[i].Points = append(p.Curves[i].Points, plot.Point{X: float64(c.Conns), Y: t.Ratio.Median})
				most = max(most, t.Ratio.Median)
			}
		}
		if p.Y = linear(most); len(p.X.Ticks) > 0 {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(f.Panels) > 0 {
		for _, c := range f.Panels[0].Curves {
			f.Legend = append(f.Legend, c.Line)
		}
	}
	return f.SVG()
}

// line is the look of the i-th target.
func line(i int, name string) plot.Line {
	l := plot.Line{Name: name, Colour: fmt.Sprintf("hsl(%d, 70%%, 40%%)", 137*i%360)}
	if slices.Contains([]string{nameBare, nameNginx}, name) {
		l.Colour, l.Dash = "hsl(0, 0%, 45%)", 3+3*i
	}
	return l
}

// linear is an axis from 0 to a round number that is not below most.
func linear(most float64) plot.Axis {
	step := math.Pow(10, math.Floor(math.Log10(max(most, 1e-6))))
	for _, finer := range []float64{0.2, 0.5, 1} {
		if most <= 5*finer*step {
			step *= finer
			break
		}
	}
	var a plot.Axis
	for v := 0.0; ; v += step {
		a.Ticks = append(a.Ticks, plot.Tick{At: v, Label: fmt.Sprintf("%g", math.Round(v*1e6)/1e6)})
		if v >= most {
			return a
		}
	}
}
