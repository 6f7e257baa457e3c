package soak

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Report is what a soak found.
type Report struct {
	Violations []Violation // the first of them
	Violated   int         // all of them
	Splits     []string    // of conversations split in two after a loss the first, to look into
	Requests   int         // that agents sent, closing ones included

	options  Options
	faulty   time.Duration
	took     time.Duration
	rounds   int
	counts   map[string]map[string]int
	degraded time.Duration
	losses   int
	panics   int
	tenants  []*tenant
}

func (s *soak) report() *Report {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	return &Report{
		Violations: s.tally.violations, Violated: s.tally.violated, Splits: s.tally.splits,
		Requests: int(s.sent.Load()),
		options:  s.Options, faulty: s.faulty, took: time.Since(s.began), rounds: s.rounds, counts: s.tally.counts,
		degraded: s.fleet.degraded, tenants: s.tenants,
		losses: s.fleet.total(lossesMetric), panics: s.fleet.total("dewpoint_panics_total"),
	}
}

// Count is one of the report's figures.
func (r *Report) Count(group, name string) int { return r.counts[group][name] }

// Markdown writes the tables.
func (r *Report) Markdown(w io.Writer) {
	r.setting(w)
	r.outcome(w)
	r.checks(w)
}

func (r *Report) setting(w io.Writer) {
	o := r.options
	var kinds []string
	for _, t := range r.tenants {
		kinds = append(kinds, t.condenser.name)
	}
	fmt.Fprintf(w, "## %s store\n\n", o.Store)
	fmt.Fprintf(w, "Seed %d, %s %s/%s with %d cores, %d replicas, %d sessions of %d tenants (%s), faults for %v, %v in all.\n\n",
		o.Seed, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.Replicas, o.Sessions, o.Tenants,
		strings.Join(kinds, "; "), r.faulty.Round(time.Second), r.took.Round(time.Second))
}

func (r *Report) outcome(w io.Writer) {
	ended := r.counts[groupEnded]
	row := func(name string, value any) { fmt.Fprintf(w, "| %s | %v |\n", name, value) }
	fmt.Fprint(w, "| | |\n|---|---:|\n")
	row("**violations**", fmt.Sprintf("**%d**", r.Violated))
	row("requests sent, attempts included", r.Requests)
	row("served", ended[endServed.how])
	row("failed for upstream's fault, and sent again", r.sent("upstream: "))
	row("failed with a killed replica, and sent again", ended[endKilled.String()]+ended[endRefused.String()])
	row("given up by a busy machine, and sent again", ended[endSlow.String()]+ended[endLate.String()])
	row("requests and writes that went without the store", r.losses)
	row("time without the store, all replicas together", r.degraded.Round(100*time.Millisecond))
	row("panics", r.panics)
	row("faults injected", r.sum(groupInjected))
	row("summariser calls that were made to fail", r.sum(groupSummariser)-r.counts[groupSummariser]["none"])
	row("condensations that answers told of", r.sum(groupCondensed))
	row("lines of conversation, and of them split in two after a loss", fmt.Sprintf("%d, %d", r.sum(groupLines), r.sum(groupSplit)))
	row("closing rounds", r.rounds)
	fmt.Fprintln(w)
}

// sent adds up the exchanges that ended for a reason.
func (r *Report) sent(why string) int {
	sum := 0
	for name, n := range r.counts[groupEnded] {
		if strings.Contains(name, why) {
			sum += n
		}
	}
	return sum
}

// sum adds up a group.
func (r *Report) sum(group string) int {
	sum := 0
	for _, n := range r.counts[group] {
		sum += n
	}
	return sum
}

// checks writes what was checked, and how often.
func (r *Report) checks(w io.Writer) {
	fmt.Fprint(w, "| checked | times |\n|---|---:|\n")
	counts := r.counts[groupChecked]
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "| %s | %d |\n", name, counts[name])
	}
	fmt.Fprintln(w)
}
