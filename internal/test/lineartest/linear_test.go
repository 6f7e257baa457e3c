package lineartest

import (
	"strings"
	"testing"
)

// TestTellsQuadraticWork checks that copying the rest of a text at every cut fails, and that cutting it once passes.
func TestTellsQuadraticWork(t *testing.T) {
	const pair = "<env></env>"
	short, long := strings.Repeat(pair, small/len(pair)), strings.Repeat(pair, further*small/len(pair))
	again := func(text string) {
		for {
			before, after, found := strings.Cut(text, pair)
			if !found {
				return
			}
			text = before + "\n" + after
		}
	}
	if r := ratio(again, short, long, decides); r <= decides {
		t.Errorf("quadratic work takes %.1f times as long", r)
	}
	if r := ratio(func(text string) { _ = strings.ReplaceAll(text, pair, "\n") }, short, long, decides); r > decides {
		t.Errorf("linear work takes %.1f times as long", r)
	}
}
