package replay

import (
	"fmt"
	"os"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// recordedRuns are those of the folder that DEWPOINT_RUNS names.
func recordedRuns(t *testing.T) (runs []Run) {
	t.Helper()
	folder := os.Getenv("DEWPOINT_RUNS")
	if folder == "" {
		t.Skip("SKIPPED: set DEWPOINT_RUNS to a folder of recorded runs; generated runs prove the same in this package")
	}
	paths, err := Paths([]string{folder})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d runs in %s: %v", len(paths), folder, err)
	}
	for _, path := range paths {
		run, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

// sized are the condensers for runs of a recorded length: each type, and pipelines of a shaping one and one that asks a model.
func sized() []config.Condenser {
	all := stages()
	for i := range all {
		c := &all[i]
		if c.MaxSize > 0 {
			c.MaxSize, c.KeepFirst = 60, 2
		}
		if c.MaxEvents > 0 {
			c.MaxEvents = 60
		}
		if c.AttentionWindow > 1 {
			c.AttentionWindow = 20
		}
		if c.MaxEventLength > 0 {
			c.MaxEventLength = 4000
		}
	}
	pair := func(a, b int) config.Condenser {
		return config.Condenser{Type: config.TypePipeline, Condensers: []config.Condenser{all[a], all[b]}}
	}
	return append(all, pair(9, 0), pair(7, 0), pair(6, 2), pair(8, 1))
}

// TestRecordedMatrix plays recorded runs under every condenser, with sealed reasoning in every form on each answer, some, and the first:
// nothing is refused, and the run is condensed as often as without. Each cell has one of the runs, in turns, so that each run is played
// several times; all runs in all cells take hours.
func TestRecordedMatrix(t *testing.T) {
	runs, all := recordedRuns(t), sized()
	inCell := func(condenser, form, pattern int) int {
		return (condenser*len(patterns()) + pattern + 5*form) % len(runs)
	}
	plain, counts := newCrewOf(t, all, fakeupstream.Options{}, 0), map[string]int{}
	for n, c := range all {
		for form := range fakeupstream.Seals() {
			for pattern := range patterns() {
				run := runs[inCell(n, form, pattern)]
				if key := fmt.Sprint(n, run.Name); counts[key] == 0 {
					counts[key] = 1 + plain.playRun(t, c, run, 0, nil).Condensations
				}
			}
		}
	}
	played := map[string]int{}
	for form, seal := range fakeupstream.Seals() {
		w := newCrewOf(t, all, fakeupstream.Options{Seals: seal}, 0)
		for n, c := range all {
			for pattern := range patterns() {
				run := runs[inCell(n, form, pattern)]
				played[run.Name]++
				got, want := w.playRun(t, c, run, pattern, nil).Condensations, counts[fmt.Sprint(n, run.Name)]-1
				if got != want {
					t.Errorf("%s, %s, %s, pattern %d: %d condensations, %d without", run.Name, nameOf(c), seal, pattern, got, want)
				}
			}
		}
	}
	t.Logf("%d cells over %d of %d runs", len(all)*len(fakeupstream.Seals())*len(patterns()), len(played), len(runs))
	if len(played) < len(runs) {
		t.Errorf("%d of %d runs were played", len(played), len(runs))
	}
}
