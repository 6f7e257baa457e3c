package retention

import (
	"fmt"
	"math"

	"github.com/dewpoint-proxy/dewpoint/lab/plot"
)

// fair is the share of moments that may be over the budget for a figure to be drawn.
const fair = 0.1

// Plot draws RR_mem and RR_ctx over the budgets, with what is within the budget only; an SVG.
func (r *Result) Plot() []byte {
	var f plot.Figure
	for _, m := range metrics()[1:] {
		f.Panels = append(f.Panels, r.panel(m))
	}
	for s := range r.Strategies {
		f.Legend = append(f.Legend, r.line(s))
	}
	return f.SVG()
}

// panel is one diagram: budgets to the right, equal ratios equally far apart, recall upwards.
func (r *Result) panel(m metric) plot.Panel {
	p := plot.Panel{Title: m.name, XLabel: "budget, share of the history's tokens", X: plot.Axis{Log: true}}
	for tenth := 0; tenth <= 10; tenth += 2 {
		p.Y.Ticks = append(p.Y.Ticks, plot.Tick{At: float64(tenth) / 10, Label: fmt.Sprintf("%d%%", 10*tenth)})
	}
	for _, share := range r.Shares {
		p.X.Ticks = append(p.X.Ticks, plot.Tick{At: share, Label: fmt.Sprintf("%.0f%%", 100*share)})
	}
	for s := range r.Strategies {
		p.Curves = append(p.Curves, plot.Curve{Line: r.line(s), Points: r.points(m, s)})
	}
	return p
}

func (r *Result) points(m metric, s int) []plot.Point {
	var out []plot.Point
	for at, share := range r.Shares {
		c := r.total(s, at, r.all())
		v := m.ratio(c)
		if math.IsNaN(v) || float64(c.Over) > fair*float64(c.Moments) {
			continue
		}
		out = append(out, plot.Point{X: share, Y: v})
	}
	return out
}

// line is the look of a strategy: baselines are grey and dashed.
func (r *Result) line(s int) plot.Line {
	l := plot.Line{Name: r.Strategies[s].Name, Colour: r.colour(s)}
	if r.Strategies[s].Baseline {
		l.Dash = 2 + 3*s
	}
	return l
}

// colour is a strategy's own: condensers share the circle of hues.
func (r *Result) colour(s int) string {
	if r.Strategies[s].Baseline {
		return fmt.Sprintf("hsl(0, 0%%, %d%%)", 30+10*(s%4))
	}
	return fmt.Sprintf("hsl(%d, 70%%, %d%%)", 137*s%360, 36+8*(s%3))
}
