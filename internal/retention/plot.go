package retention

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Size of the plot, in pixels.
const (
	panelWidth  = 340
	panelHeight = 300
	margin      = 56
	legendWidth = 270
)

// Plot draws RR_mem and RR_ctx over the budgets, with what is within the budget only; an SVG.
func (r *Result) Plot() []byte {
	var b bytes.Buffer
	width, height := 2*(panelWidth+margin)+legendWidth, panelHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	for i, m := range metrics()[1:] {
		p := panel{r: r, metric: m, left: margin + i*(panelWidth+margin), top: margin}
		p.axes(&b)
		for s := range r.Strategies {
			p.curve(&b, s)
		}
	}
	r.legend(&b, 2*(panelWidth+margin)+margin/2, margin)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel is one diagram: budgets to the right, recall upwards.
type panel struct {
	r         *Result
	metric    metric
	left, top int
}

// x is where a budget stands: equal ratios are equally far apart.
func (p *panel) x(share float64) float64 {
	low, high := p.r.Shares[0], p.r.Shares[len(p.r.Shares)-1]
	if low == high {
		return float64(p.left) + panelWidth/2
	}
	return float64(p.left) + panelWidth*math.Log(share/low)/math.Log(high/low)
}

func (p *panel) y(recall float64) float64 { return float64(p.top) + panelHeight*(1-recall) }

func (p *panel) axes(b *bytes.Buffer) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>`+"\n", p.left, p.top-16, html.EscapeString(p.metric.name))
	for tenth := 0; tenth <= 10; tenth += 2 {
		y := p.y(float64(tenth) / 10)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1[2]f" stroke="#dddddd"/>`+"\n", p.left, y, p.left+panelWidth)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%d%%</text>`+"\n", p.left-8, y+4, 10*tenth)
	}
	for _, share := range p.r.Shares {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f%%</text>`+"\n", p.x(share), p.top+panelHeight+20, 100*share)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">budget, share of the history's tokens</text>`+"\n",
		p.left+panelWidth/2, p.top+panelHeight+42)
}

// fair is the share of moments that may be over the budget for a figure to be drawn.
const fair = 0.1

func (p *panel) curve(b *bytes.Buffer, s int) {
	var points, dots bytes.Buffer
	for at, share := range p.r.Shares {
		c := p.r.total(s, at, p.r.all())
		v := p.metric.ratio(c)
		if math.IsNaN(v) || float64(c.Over) > fair*float64(c.Moments) {
			continue
		}
		fmt.Fprintf(&points, "%.1f,%.1f ", p.x(share), p.y(v))
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`, p.x(share), p.y(v), p.r.colour(s))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" %s/>%s`+"\n", bytes.TrimSpace(points.Bytes()), p.r.stroke(s), dots.Bytes())
}

func (r *Result) legend(b *bytes.Buffer, left, top int) {
	for s, strategy := range r.Strategies {
		y := top + 20*s
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" %[4]s/>`+"\n", left, y, left+28, r.stroke(s))
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left+36, y+4, html.EscapeString(strategy.Name))
	}
}

// stroke is the look of a strategy's line: baselines are grey and dashed.
func (r *Result) stroke(s int) string {
	look := fmt.Sprintf(`stroke="%s" stroke-width="2"`, r.colour(s))
	if r.Strategies[s].Baseline {
		return look + fmt.Sprintf(` stroke-dasharray="%d 3"`, 2+3*s)
	}
	return look
}

// colour is a strategy's own: condensers share the circle of hues.
func (r *Result) colour(s int) string {
	if r.Strategies[s].Baseline {
		return fmt.Sprintf("hsl(0, 0%%, %d%%)", 30+10*(s%4))
	}
	return fmt.Sprintf("hsl(%d, 70%%, %d%%)", 137*s%360, 36+8*(s%3))
}
