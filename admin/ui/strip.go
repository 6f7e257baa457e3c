package ui

import (
	"fmt"
	"strings"
)

// Strip is a chart of a thread's steps: a bar a step, stacked by origin.
type Strip struct {
	Class         string
	Width, Height int
	Grid          []Tick
	Paths         []Path
	Sent          string // points of the line of what the agent sent
	Marks         []Mark
	Hits          []Hit
	Axis          []Tick
	Each          int // steps that a bar stands for
	Cached        string
	HasCached     bool
	Max           int
}

// Path is the bars of one origin.
type Path struct{ Class, D string }

// Tick is a label of an axis.
type Tick struct {
	X, Y float64
	Text string
}

// Mark is a condensation.
type Mark struct {
	X, Y float64
	Text string
	URL  string
}

// Hit is the link behind a bar.
type Hit struct {
	X, W float64
	URL  string
	Text string
}

// form is the measure of a strip.
type form struct {
	class               string
	width, height, bars int
}

// The forms of a strip: for wide and for narrow screens, where it is taller.
var (
	wideStrip   = form{"wide", 1140, 210, 150}
	narrowStrip = form{"narrow", 340, 240, 48}
)

const (
	stripTop    = 22 // room for marks
	stripBottom = 20 // room for numbers
	stripLeft   = 2
)

// newStrip draws a strip. Where there are more steps than bars, a bar is the newest of several.
func newStrip(place Place, steps []StepSize, f form) *Strip {
	if len(steps) == 0 {
		return nil
	}
	s := &Strip{Class: f.class, Width: f.width, Height: f.height, Each: (len(steps) + f.bars - 1) / f.bars}
	bars := (len(steps) + s.Each - 1) / s.Each
	for i := range steps {
		s.Max = max(s.Max, steps[i].Sent, steps[i].Forwarded())
	}
	top := niceCeiling(s.Max)
	y := func(tokens int) float64 {
		return float64(f.height-stripBottom) - float64(tokens)/float64(top)*float64(f.height-stripBottom-stripTop)
	}
	for n := 1; n <= 4; n++ {
		s.Grid = append(s.Grid, Tick{0, y(top * n / 4), tokens(top * n / 4)})
	}
	slot := min(float64(f.width-stripLeft)/float64(bars), 26)
	origins := [...]string{"tools", "record", "kept", "new", "whole"}
	paths := [len(origins)]strings.Builder{}
	var sent, cached strings.Builder
	for b := range bars {
		last := min((b+1)*s.Each, len(steps))
		step := &steps[last-1]
		x, w := stripLeft+float64(b)*slot, max(slot*0.88, 1)
		base := 0
		parts := []int{step.Prompt, step.Record, step.Kept, step.New}
		for i, part := range parts {
			if part <= 0 {
				continue
			}
			at := i
			if step.Whole {
				at = len(origins) - 1
			}
			fmt.Fprintf(&paths[at], "M%.1f %.1fh%.1fV%.1fh-%.1fz", x, y(base), w, y(base+part), w)
			base += part
		}
		if step.Cached > 0 {
			fmt.Fprintf(&cached, "M%.1f %.1fh%.1fV%.1fh-%.1fz", x, y(0), w, y(min(step.Cached, base)), w)
		}
		fmt.Fprintf(&sent, "%.1f,%.1f ", x+w/2, y(step.Sent))
		s.mark(steps[b*s.Each:last], x+w/2, y(max(step.Sent, base)))
		s.Hits = append(s.Hits, Hit{stripLeft + float64(b)*slot, slot, place.stepURL(step.At), step.tip(last)})
		if every := max(1, bars/8); b%every == 0 && bars-b >= every/2 {
			s.Axis = append(s.Axis, Tick{x + w/2, float64(f.height - 5), count(last)})
		}
	}
	for i, name := range origins {
		if paths[i].Len() > 0 {
			s.Paths = append(s.Paths, Path{name, paths[i].String()})
		}
	}
	s.Sent, s.Cached, s.HasCached = strings.TrimSpace(sent.String()), cached.String(), cached.Len() > 0
	return s
}

// mark marks the condensations of steps that share a bar.
func (s *Strip) mark(steps []StepSize, x, y float64) {
	var made []string
	url := ""
	for i := range steps {
		for _, c := range steps[i].Made {
			made, url = append(made, c.Text), c.URL
		}
	}
	if len(made) > 0 {
		s.Marks = append(s.Marks, Mark{x, y - 4, "Condensation " + strings.Join(made, ", "), url})
	}
}

// tip says a step in a sentence.
func (s *StepSize) tip(number int) string {
	text := fmt.Sprintf("Step %d: %s sent, %s forwarded", number, tokens(s.Sent), tokens(s.Forwarded()))
	if s.Cached > 0 {
		text += ", " + tokens(s.Cached) + " of it cached"
	}
	if len(s.Made) > 0 {
		text += "; condensed"
	}
	return text
}

// niceCeiling returns the next round number.
func niceCeiling(n int) int {
	step := 1
	for {
		for _, m := range [...]int{1, 2, 4, 6, 8} {
			if m*step >= max(n, 4) {
				return m * step
			}
		}
		step *= 10
	}
}
