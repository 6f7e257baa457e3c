package engine_test

import (
	"bytes"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
)

// TestACorrectedRecordIsNotReplacedBeforeItApplies: a record that an operator corrected is the one that is shown next, although the history has grown
// meanwhile so far that another summary would be prepared.
func TestACorrectedRecordIsNotReplacedBeforeItApplies(t *testing.T) {
	for name, first := range map[string]int{"prepared in advance": 17, "in place of excerpts": 23} {
		t.Run(name, func(t *testing.T) {
			r, summariser := hurrying(t)
			close(summariser.free)
			r.late = func(report engine.Report) { r.failed(report) }
			asked := says(first)
			turn := r.begin(asked, engine.WishNone)
			turn.Condense(t.Context())
			r.logged(turn)
			asked.work.Wait()
			<-summariser.asked
			ready, err := r.engine.Pending(t.Context(), turn.Place().Thread.ID)
			must(t, err)
			_, err = r.engine.Correct(t.Context(), turn.Place().Thread.ID, ready.Version, "DISCUSSED: the mountains.", "Anna decides.")
			must(t, err)
			for n := first + 2; n < 60; n += 2 {
				asked, other := says(n), r.replica()
				turn := other.begin(asked, engine.WishNone)
				report := turn.Condense(t.Context())
				other.logged(turn)
				asked.work.Wait()
				if len(report.Attempts) == 0 {
					continue
				}
				if got := forwarded(turn); !bytes.Contains(got, []byte("the mountains.")) || !bytes.Contains(got, []byte("Anna decides.")) {
					t.Errorf("with %d messages: %s", n, got)
				}
				return
			}
			t.Error("nothing was due")
		})
	}
}
