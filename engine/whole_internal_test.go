package engine

import "testing"

// TestHiddenMessagesCostWhatUpstreamCountedBeforeTheyWereHidden follows a history whose newer messages have more of upstream's tokens than the
// older ones, and whose record has fewer.
func TestHiddenMessagesCostWhatUpstreamCountedBeforeTheyWereHidden(t *testing.T) {
	var last whole
	for i, step := range []struct{ before, after, known, actual, theirs, theirsKnown int }{
		{1000, 1000, 0, 800, 800, 0},
		{2000, 2000, 1000, 2000, 2000, 800},
		{3000, 500, 2000, 450, 3120, 2000}, // condensed: what is new is counted as what came shortly before, 1400 for 1250
		{3100, 600, 3000, 560, 3230, 3120}, // the same is hidden, so that only the new part differs
		{3300, 800, 3100, 900, 3570, 3230},
	} {
		next := last.next("m", step.before, step.after, step.actual)
		if known := next.known(last, step.known); next.theirs != step.theirs || known != step.theirsKnown {
			t.Errorf("request %d: %d tokens without condensing, of which %d were known; want %d and %d", i+1, next.theirs, known, step.theirs, step.theirsKnown)
		}
		last = next
	}
	if other := last.next("another", 4000, 2000, 1000); other.theirs != 2000 {
		t.Errorf("another model's counts are converted by its own proportion: %d", other.theirs)
	}
}
