package engine

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// TestOverWindow: a request fits if its tokens and those reserved for the answer together do.
func TestOverWindow(t *testing.T) {
	for _, c := range []struct {
		window, total, reserved int
		over                    bool
	}{{100, 80, 20, false}, {100, 81, 20, true}, {100, 80, 21, true}, {100, 100, 0, false}, {0, 100, 100, false}} {
		if got := overWindow(condense.Input{Window: c.window, Total: c.total, Reserved: c.reserved}); got != c.over {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestNoSummaryAfterTwoThreadsLostTheirs: no model writes a summary once two threads in a row have lost theirs, unless the client asks for one.
func TestNoSummaryAfterTwoThreadsLostTheirs(t *testing.T) {
	for lost, never := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		f := Form{turn: &Turn{}}
		f.turn.in.Tenant, f.place.Thread.Lost = &Tenant{}, lost
		if got := f.neverWaits(); got != never {
			t.Errorf("%d lost: never waits: %t", lost, got)
		}
		if f.asked.wish = WishNow; f.neverWaits() {
			t.Errorf("%d lost: a request that asks for a summary does not wait", lost)
		}
	}
}

// TestReserved: the client's limit is reserved for the answer, or else the model's, but not more than an eighth of its window.
func TestReserved(t *testing.T) {
	for _, c := range []struct{ asked, most, window, want int }{{700, 500, 1000, 700}, {0, 125, 1000, 125}, {0, 126, 1000, 125}, {0, 124, 1000, 124}} {
		f := Form{turn: &Turn{}}
		f.turn.in.Split = &dialect.Request{MaxOutput: c.asked}
		f.turn.model.MaxOutput, f.relief.window = c.most, c.window
		if got := f.reserved(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
