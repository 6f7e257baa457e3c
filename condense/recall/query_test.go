package recall_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
)

// TestLongQueriesAreCut checks that the memory a search takes does not grow with the length of the query.
func TestLongQueriesAreCut(t *testing.T) {
	var query, text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&query, "w%d ", i)
	}
	for i := range 40000 {
		fmt.Fprintf(&text, "w%d %d\n", i%4000, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := recall.Lines([]recall.Event{{ID: "1", Text: text.String()}}, query.String(), recall.Room{Tokens: 800, Count: quarters})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 || !strings.Contains(got, "[event 1") {
		t.Errorf("%d MiB were allocated, the answer is %q", took, got)
	}
}
