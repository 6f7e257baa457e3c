package frontier

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Rule is a condenser as it would be configured.
type Rule struct {
	Name      string
	Condenser condense.Condenser
}

// floorTokens is the size up to which a request is never condensed by price.
const floorTokens = 16_000

// Rules lists what is compared: condensing by price and at plain limits.
func Rules(p Prices) []Rule {
	shipped := condense.Settings{MaxSize: 240, MinTokens: 4000, KeepFirst: headMessages, MinimumProgress: 0.1}
	at := func(tokens float64) condense.Settings {
		s := shipped
		s.MaxTokens = tokens
		return s
	}
	byPrice := shipped
	byPrice.Economics = &condense.Economics{Read: p.Read, Write: p.Write, Answer: p.Output, Floor: floorTokens}
	rules := []Rule{
		{"`excerpts`, by price", condense.Excerpts{Settings: byPrice}},
		{"`amortized_forgetting`, by price", condense.AmortizedForgetting{Settings: byPrice}},
	}
	for _, n := range []float64{80_000, 60_000, 45_000, 35_000, 28_000, 22_000} {
		rules = append(rules, Rule{fmt.Sprintf("`excerpts`, above %.0f,000", n/1000), condense.Excerpts{Settings: at(n)}})
	}
	for _, n := range []float64{45_000, 30_000} {
		rules = append(rules, Rule{fmt.Sprintf("`amortized_forgetting`, above %.0f,000", n/1000), condense.AmortizedForgetting{Settings: at(n)}})
	}
	return rules
}

// Write plays the runs under the rules and writes a table.
func Write(ctx context.Context, w io.Writer, runs []*Run, rules []Rule, p Prices) error {
	fmt.Fprintln(w, "| rule | saved | with re-reads | missing | runs that cost over 1% more, the worst | condensations | saved and missing, every other run | the others | dialogues |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, rule := range rules {
		all, err := play(ctx, runs, rule, p)
		if err != nil {
			return err
		}
		writeRow(w, rule.Name, all)
	}
	direct, least := 0.0, 0.0
	for _, r := range runs {
		direct += r.direct(p)
		least += r.Least(p)
	}
	fmt.Fprintf(w, "| as deep as by price, with hindsight | %.1f%% | | | | | | | |\n", 100*(1-least/direct))
	return nil
}

// play plays all runs under a rule, several at once.
func play(ctx context.Context, runs []*Run, rule Rule, p Prices) ([]Outcome, error) {
	all := make([]Outcome, len(runs))
	var playing errgroup.Group
	playing.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range runs {
		playing.Go(func() (err error) {
			all[i], err = r.Play(ctx, rule.Condenser, p)
			return err
		})
	}
	if err := playing.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", rule.Name, err)
	}
	return all, nil
}

// direct returns what a run costs without a condenser.
func (r *Run) direct(p Prices) float64 {
	c, cost := newCache(), 0.0
	for _, s := range r.steps {
		cost += p.of(c.charge(r.fixed, r.sent(s))) + p.Output*float64(s.answer)
	}
	return cost
}

// sum adds up outcomes.
func sum(all []Outcome, of func(i int, o Outcome) bool) (total Outcome) {
	for i, o := range all {
		if of(i, o) {
			total.Direct, total.Cost, total.Rereads = total.Direct+o.Direct, total.Cost+o.Cost, total.Rereads+o.Rereads
			total.Named, total.Missed, total.Condensations = total.Named+o.Named, total.Missed+o.Missed, total.Condensations+o.Condensations
		}
	}
	return total
}

func (o Outcome) saved() float64   { return 100 * (1 - o.Cost/o.Direct) }
func (o Outcome) missing() float64 { return 100 * float64(o.Missed) / float64(max(o.Named, 1)) }

// String returns what was saved and what was missing.
func (o Outcome) String() string {
	if o.Direct == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%, %.2f%%", o.saved(), o.missing())
}

func writeRow(w io.Writer, name string, all []Outcome) {
	losers, worst := 0, 0.0
	for _, o := range all {
		if o.Cost > 1.01*o.Direct {
			losers++
		}
		worst = max(worst, 100*(o.Cost/o.Direct-1))
	}
	t := sum(all, func(int, Outcome) bool { return true })
	fmt.Fprintf(w, "| %s | %.1f%% | %.1f%% | %.2f%% | %d, %.0f%% | %d | %s | %s | %s |\n", name, t.saved(), 100*(1-(t.Cost+t.Rereads)/t.Direct), t.missing(),
		losers, worst, t.Condensations, sum(all, func(i int, _ Outcome) bool { return i%2 == 0 }), sum(all, func(i int, _ Outcome) bool { return i%2 == 1 }),
		sum(all, func(_ int, o Outcome) bool { return strings.HasPrefix(o.Name, "tau") }))
}
