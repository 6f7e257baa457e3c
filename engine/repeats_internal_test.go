package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestParallelRepeats: the model gets one note for each doubling, even if parallel calls step over the exact number.
func TestParallelRepeats(t *testing.T) {
	for parallel, want := range map[int][]int{1: {5, 10, 20, 40}, 2: {6, 10, 20, 40, 80}, 3: {6, 12, 21, 42, 81, 162}, 6: {6, 12, 24, 42, 84, 162, 324}} {
		var c recentCalls
		var told []int
		for step := range 60 {
			var made repeatedCall
			for i := range parallel {
				made = c.add(session.Call{ID: fmt.Sprint(step, i), Name: "ls", Arguments: "{}"}, "same")
			}
			made.known = made.times - parallel
			if made.reached(5) {
				told = append(told, made.times)
			}
		}
		if !slices.Equal(told, want) {
			t.Errorf("%d at a time: told at %v, want %v", parallel, told, want)
		}
	}
}
