package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFigure(t *testing.T) {
	line := Line{Name: "a < b", Colour: "#ff0000", Dash: 4}
	f := Figure{Legend: []Line{line}, Panels: []Panel{{
		Title: "one & only", X: Axis{Log: true, Ticks: []Tick{{1, "1"}, {100, "100"}}}, Y: Axis{Ticks: []Tick{{0, "0"}, {10, "10"}}},
		Curves: []Curve{{line, []Point{{1, 0}, {10, 5}, {100, 10}}}},
	}}}
	svg := f.SVG()
	// From the lower left corner over the middle (of a logarithmic axis) to the upper right one.
	if !strings.Contains(string(svg), `points="56.0,356.0 226.0,206.0 396.0,56.0"`) {
		t.Errorf("the curve is elsewhere:\n%s", svg)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
