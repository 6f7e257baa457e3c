package retention

import (
	"context"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// livedLimits are the tokens above which condensers condense when they are measured as they are lived with.
func livedLimits() []int { return []int{32000, 96000} }

// Lived is what was counted when condensers condensed as they do in use: when it is due, to half of their limit, and every action after that
// scored on the view that it has, without a budget.
type Lived struct {
	names  []string
	limits []int
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
	l := &Lived{limits: livedLimits(), counts: make([][][]Counts, len(livedLimits()))}
	for _, recorded := range runs {
		r, err := newRun(recorded, counter)
		if err != nil {
			return nil, err
		}
		for i, limit := range l.limits {
			if err := l.run(ctx, r, i, limit); err != nil {
				return nil, fmt.Errorf("%s: %w", recorded.Name, err)
			}
		}
	}
	return l, nil
}

func (l *Lived) run(ctx context.Context, r *run, i, limit int) error {
	condensers := livedCondensers(r, limit)
	if l.counts[i] == nil {
		l.counts[i], l.names = make([][]Counts, len(condensers)), nil
		for _, c := range condensers {
			l.names = append(l.names, c.Name())
		}
	}
	moments := r.actions(limit)
	if len(moments) == 0 {
		return nil
	}
	for s, c := range condensers {
		counts, err := live(ctx, c, moments)
		if err != nil {
			return err
		}
		l.counts[i][s] = append(l.counts[i][s], counts)
	}
	return nil
}

// actions are all moments of a run from the first on whose history has more than a number of tokens.
func (r *run) actions(tokens int) []*moment {
	var out []*moment
	x, total := NewExtractor(), 0
	for at := range r.messages {
		if total > tokens && acts(r.messages[at].Kind) {
			out = append(out, r.moment(x, at, total))
		}
		total += r.tokens[at]
	}
	return out
}

// live goes through the moments with a condenser that condenses when that is due.
func live(ctx context.Context, c condense.Condenser, moments []*moment) (Counts, error) {
	const anySize = 1 << 30
	var sum Counts
	var log journal
	for _, m := range moments {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		v, after, err := m.settle(c, log, anySize, nil)
		if err == nil { // otherwise the request goes on as it is
			log = after
		}
		sum.Add(m.score(m.show(&v), anySize))
	}
	return sum, nil
}

// Markdown writes a table for each limit.
func (l *Lived) Markdown(w io.Writer) {
	mem, far := metrics()[1], metrics()[3]
	for i, limit := range l.limits {
		if len(l.counts[i][0]) == 0 {
			continue
		}
		c := totalOf(l.counts[i][0])
		fmt.Fprintf(w, "### As lived: above %d tokens, down to half\n\n%d actions in %d runs, %d references not in the latest exchange, %d from more than "+
			"%d units ago.\n\n", limit, c.Moments, len(l.counts[i][0]), c.Memory, c.Far, farUnits)
		fmt.Fprintln(w, "| strategy | missed per run | RR_mem | RR_far | view |\n|---|---|---|---|---|")
		for s, name := range l.names {
			runs := l.counts[i][s]
			of := func(m metric) string {
				return percent(bootstrap(len(runs), func(drawn []int) float64 {
					var c Counts
					for _, r := range drawn {
						c.Add(runs[r])
					}
					return m.ratio(c)
				}))
			}
			c := totalOf(runs)
			fmt.Fprintf(w, "| `%s` | %.1f | %s | %s | %.1f%% |\n", name, float64(c.Memory-c.Recalled)/float64(len(runs)), of(mem), of(far),
				100*c.Share/float64(c.Moments))
		}
		fmt.Fprintln(w)
	}
}

func totalOf(runs []Counts) (sum Counts) {
	for _, c := range runs {
		sum.Add(c)
	}
	return sum
}
