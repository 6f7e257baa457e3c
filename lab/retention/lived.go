package retention

import (
	"context"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// limitless is a budget that every view fits.
const limitless = 1 << 30

// Lived is what was counted when condensers condensed as they do in use: when it is due, to half of their limit, and every action after that
// scored on the view that it has, without a budget.
type Lived struct {
	names  []string
	limits []int        // of tokens, above which condensers condense
	counts [][][]Counts // by limit, strategy and run; of runs that were condensed
}

// livedCondensers are the rolling condensers, each with its limit.
func livedCondensers(r *run, limit int) []condense.Condenser {
	settings := condense.Settings{MaxTokens: float64(limit), KeepFirst: KeepFirst, MinimumProgress: 0.1}
	llm := condense.LLMSettings{Settings: settings, Summariser: r.standIn, Model: "stand-in", Window: 1 << 30, MaxOutput: 1000}
	return []condense.Condenser{
		condense.AmortizedForgetting{Settings: settings}, condense.Excerpts{Settings: settings}, condense.NewLLM(llm),
	}
}

// MeasureLived plays the runs action by action.
func MeasureLived(ctx context.Context, runs []replay.Run, counter Counter) (*Lived, error) {
	l := &Lived{limits: []int{32000, 96000}}
	for _, c := range livedCondensers(&run{}, 0) {
		l.names = append(l.names, c.Name())
	}
	for range l.limits {
		l.counts = append(l.counts, make([][]Counts, len(l.names)))
	}
	for _, recorded := range runs {
		r, err := newRun(recorded, counter)
		if err != nil {
			return nil, err
		}
		for i, limit := range l.limits {
			moments := r.actions(limit)
			if len(moments) == 0 {
				continue
			}
			for s, c := range livedCondensers(r, limit) {
				counts, err := live(ctx, c, moments)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", recorded.Name, err)
				}
				l.counts[i][s] = append(l.counts[i][s], counts)
			}
		}
	}
	return l, nil
}

// live goes through the moments of a run, under a condenser that goes down to half of a budget.
func live(ctx context.Context, c condense.Condenser, moments []*moment) (counts Counts, err error) {
	var log journal
	for _, m := range moments {
		if err := ctx.Err(); err != nil {
			return counts, err
		}
		v, after, err := m.settle(c, log, limitless, nil)
		if err != nil { // the request goes on as it is
			v, after = m.project(log), log
		}
		counts.Add(m.score(m.show(&v), limitless))
		log = after
	}
	return counts, nil
}

// Markdown writes a table for each limit.
func (l *Lived) Markdown(w io.Writer) {
	mem, far := metrics()[1], metrics()[3]
	for i, limit := range l.limits {
		n := len(l.counts[i][0])
		if n == 0 {
			continue
		}
		all := upTo(n)
		c := total(l.counts[i][0], all)
		fmt.Fprintf(w, "### As lived: above %d tokens, down to half\n\n%d actions in %d runs, %d references not in the latest exchange, %d from more than "+
			"%d units ago.\n\n", limit, c.Moments, n, c.Memory, c.Far, farUnits)
		fmt.Fprintln(w, "| strategy | missed per run | RR_mem | RR_far | view |\n|---|---|---|---|---|")
		for s, name := range l.names {
			runs := l.counts[i][s]
			of := func(m metric) string {
				return percent(bootstrap(n, func(drawn []int) float64 { return m.ratio(total(runs, drawn)) }))
			}
			c := total(runs, all)
			fmt.Fprintf(w, "| `%s` | %.1f | %s | %s | %.1f%% |\n", name, float64(c.Memory-c.Recalled)/float64(n), of(mem), of(far), 100*c.Share/float64(c.Moments))
		}
		fmt.Fprintln(w)
	}
}
