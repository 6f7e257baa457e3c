package replay

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// TestBatchKeepsTheOrderOfRuns: runs are replayed several at a time, and reported in the order in which they came. One that cannot be replayed
// is left out, and named.
func TestBatchKeepsTheOrderOfRuns(t *testing.T) {
	t.Parallel()
	settings := []Setting{{"a", config.Default()}, {"b", config.Default()}}
	b := NewBatch(t.Context(), settings, Options{Encoders: encoders}, false)
	for i := range 20 {
		run := recorded(ProtocolChat, 1+(20-i)%5, 3000)
		if run.Name = fmt.Sprint(i); i == 7 {
			run.Messages = run.Messages[:1]
		}
		if err := b.Play(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	b.Skip("notes.json", "no log", false)
	results, failed := b.End()
	if failed != 1 || fmt.Sprint(results.Skipped) != "[{7 replay 7: it has no answer of a model} {notes.json no log}]" || len(results.Runs) != 19 {
		t.Errorf("%d failed, %d runs, skipped %v", failed, len(results.Runs), results.Skipped)
	}
	for i, run := range results.Runs {
		if want := fmt.Sprint(i + min(i/7, 1)); len(run) != 2 || run[0].Run != want || run[1].Run != want || !run[0].Short {
			t.Errorf("run %d is %+v, want %s", i, run, want)
		}
	}
}

func TestBatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := NewBatch(ctx, []Setting{{"a", config.Default()}}, Options{Encoders: encoders}, false)
	cancel()
	var err error
	for range 100 {
		if err = b.Play(ctx, recorded(ProtocolChat, 1, 0)); err != nil {
			break
		}
	}
	if results, failed := b.End(); !errors.Is(err, context.Canceled) || failed != 0 || len(results.Skipped) != 0 {
		t.Errorf("%v, %d failed, %v", err, failed, results.Skipped)
	}
}
