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

	*soak // it has ended
	took  time.Duration
}

// Markdown writes the tables.
func (r *Report) Markdown(w io.Writer) {
	var kinds []string
	for _, t := range r.tenants {
		kinds = append(kinds, t.condenser.name)
	}
	fmt.Fprintf(w, "## %s store\n\n", r.Store)
	fmt.Fprintf(w, "Seed %d, %s %s/%s with %d cores, %d replicas, %d sessions of %d tenants (%s), faults for %v, %v in all.\n\n",
		r.Seed, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), r.Replicas, r.Sessions, len(kinds),
		strings.Join(kinds, "; "), r.faulty.Round(time.Second), r.took.Round(time.Second))
	r.outcome(w)
	fmt.Fprint(w, "| checked | times |\n|---|---:|\n")
	checked := r.tally.counts[groupChecked]
	for _, name := range slices.Sorted(maps.Keys(checked)) {
		fmt.Fprintf(w, "| %s | %d |\n", name, checked[name])
	}
	fmt.Fprintln(w)
}

func (r *Report) outcome(w io.Writer) {
	t, f := r.tally, r.fleet
	all := func(group string) int { return t.sum(group, "") }
	row := func(name string, value any) { fmt.Fprintf(w, "| %s | %v |\n", name, value) }
	fmt.Fprint(w, "| | |\n|---|---:|\n")
	row("**violations**", fmt.Sprintf("**%d**", r.Violated))
	row("requests sent, attempts included", r.sent.Load())
	row("served", t.of(groupEnded, endServed.how))
	row("failed because of upstream, and sent again", t.sum(groupEnded, "upstream: "))
	row("failed because a replica was killed, and sent again", t.of(groupEnded, endKilled.String())+t.of(groupEnded, endRefused.String()))
	row("timed out on a busy machine, and sent again", t.of(groupEnded, endSlow.String())+t.of(groupEnded, endLate.String()))
	row("requests and writes without the store", f.total(lossesMetric))
	row("time without the store, sum of all replicas", f.degraded.Round(100*time.Millisecond))
	row("panics", f.total("dewpoint_panics_total"))
	row("faults injected", all(groupInjected))
	row("summariser calls with an injected failure", all(groupSummariser)-t.of(groupSummariser, "none"))
	row("condensations reported in answers", all(groupCondensed))
	row("branches of conversations, and those split in two after a loss", fmt.Sprintf("%d, %d", all(groupLines), all(groupSplit)))
	row("closing rounds", r.rounds)
	fmt.Fprintln(w)
}
