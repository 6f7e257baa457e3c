package replay

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// Batch replays runs as they are read, as many at a time as there are processors.
type Batch struct {
	settings []Setting
	options  Options
	records  bool
	runs     chan queued
	working  sync.WaitGroup
	given    int

	mu      sync.Mutex
	reports map[int][]Report
	skipped []Skipped
	failed  int
}

type queued struct {
	number int
	run    Run
}

// NewBatch starts to replay under these settings. Unless records is set, the reports are without records. Call End.
func NewBatch(ctx context.Context, settings []Setting, o Options, records bool) *Batch {
	b := &Batch{settings: settings, options: o, records: records, runs: make(chan queued), reports: map[int][]Report{}}
	for range runtime.GOMAXPROCS(0) {
		b.working.Go(func() {
			for r := range b.runs {
				b.compare(ctx, r)
			}
		})
	}
	return b
}

// Play hands over a run, and waits until one of the others is done if there are too many at a time. Runs must be handed over one by one.
func (b *Batch) Play(ctx context.Context, run Run) error {
	select {
	case b.runs <- queued{b.given, run}:
		b.given++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compare replays a run. A run that cannot be replayed is left out.
func (b *Batch) compare(ctx context.Context, r queued) {
	cfgs := make([]*config.Config, len(b.settings))
	for i, s := range b.settings {
		cfgs[i] = s.Config
	}
	reports, err := Compare(ctx, cfgs, r.run, b.options)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		b.Skip(r.run.Name, err.Error(), true)
		return
	}
	for i := range reports {
		if !b.records {
			reports[i].Records = nil
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports[r.number] = reports
}

// Skip notes what is left out, and whether that is a failure.
func (b *Batch) Skip(name, reason string, failure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skipped = append(b.skipped, Skipped{name, reason})
	if failure {
		b.failed++
	}
}

// End waits for the last runs. It returns the results, in the order in which the runs were handed over, and the number of failures.
func (b *Batch) End() (results Results, failed int) {
	close(b.runs)
	b.working.Wait()
	results = Results{Settings: b.settings, Skipped: b.skipped}
	for i := range b.given {
		if reports, ok := b.reports[i]; ok {
			results.Runs = append(results.Runs, reports)
		}
	}
	slices.SortStableFunc(results.Skipped, func(a, c Skipped) int { return strings.Compare(a.Name, c.Name) })
	return results, b.failed
}
