// Package plot draws line diagrams as SVG: panels beside one another, and one legend for all of them.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Figure is panels in a row with a legend at their right.
type Figure struct {
	Panels []Panel
	Legend []Line // in the order in which they are named
}

// Panel is one diagram.
type Panel struct {
	Title  string
	XLabel string
	X, Y   Axis
	Curves []Curve
}

// Axis is where values stand. The first and the last tick are its ends.
type Axis struct {
	Ticks []Tick
	Log   bool // equal ratios are equally far apart
}

// Tick is a value that is named.
type Tick struct {
	At    float64
	Label string
}

// Line is how a curve looks, and its name in the legend.
type Line struct {
	Name   string
	Colour string // CSS
	Dash   int    // length of its dashes; 0: whole
}

// Curve is points, joined in their order.
type Curve struct {
	Line
	Points []Point
}

// Point is a pair of values.
type Point struct{ X, Y float64 }

// Size of the parts, in pixels.
const (
	panelWidth  = 340
	panelHeight = 300
	margin      = 56
	legendWidth = 270
)

// SVG draws the figure.
func (f *Figure) SVG() []byte {
	var b bytes.Buffer
	width, height := len(f.Panels)*(panelWidth+margin)+legendWidth, panelHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	for i := range f.Panels {
		f.Panels[i].draw(&b, margin+i*(panelWidth+margin), margin)
	}
	f.legend(&b, len(f.Panels)*(panelWidth+margin)+margin/2, margin)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *Panel) draw(b *bytes.Buffer, left, top int) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>`+"\n", left, top-16, html.EscapeString(p.Title))
	for _, t := range p.Y.Ticks {
		y := p.y(t.At, top)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1[2]f" stroke="#dddddd"/>`+"\n", left, y, left+panelWidth)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, html.EscapeString(t.Label))
	}
	for _, t := range p.X.Ticks {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", p.x(t.At, left), top+panelHeight+20, html.EscapeString(t.Label))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+panelWidth/2, top+panelHeight+42, html.EscapeString(p.XLabel))
	for i := range p.Curves {
		p.curve(b, &p.Curves[i], left, top)
	}
}

func (p *Panel) x(v float64, left int) float64 { return float64(left) + panelWidth*p.X.share(v) }

func (p *Panel) y(v float64, top int) float64 { return float64(top) + panelHeight*(1-p.Y.share(v)) }

// share is how far along the axis a value stands.
func (a *Axis) share(v float64) float64 {
	low, high := a.Ticks[0].At, a.Ticks[len(a.Ticks)-1].At
	switch {
	case low == high:
		return 0.5
	case a.Log:
		return math.Log(v/low) / math.Log(high/low)
	}
	return (v - low) / (high - low)
}

func (p *Panel) curve(b *bytes.Buffer, c *Curve, left, top int) {
	var points, dots bytes.Buffer
	for _, at := range c.Points {
		x, y := p.x(at.X, left), p.y(at.Y, top)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`, x, y, c.Colour)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" %s/>%s`+"\n", bytes.TrimSpace(points.Bytes()), c.stroke(), dots.Bytes())
}

func (f *Figure) legend(b *bytes.Buffer, left, top int) {
	for i := range f.Legend {
		y := top + 20*i
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" %[4]s/>`+"\n", left, y, left+28, f.Legend[i].stroke())
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left+36, y+4, html.EscapeString(f.Legend[i].Name))
	}
}

func (l *Line) stroke() string {
	look := fmt.Sprintf(`stroke="%s" stroke-width="2"`, l.Colour)
	if l.Dash > 0 {
		return look + fmt.Sprintf(` stroke-dasharray="%d 3"`, l.Dash)
	}
	return look
}
