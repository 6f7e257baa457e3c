package retention

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// What a run costs: prices in those of an input token of the agent's model, sizes in tokens.
const (
	readPrice   = 0.1 // from the prompt cache
	writePrice  = 1.25
	outputPrice = 5

	fixedTokens    = 12_000 // of the system prompt and the tools, at least
	modelWindow    = 128_000
	defaultLimit   = 96_000 // three quarters of it
	targetTokens   = 24_000
	floorTokens    = 16_000 // of the largest request that is never condensed by price
	askedTokens    = 600    // of what a summariser is told
	answeredTokens = 1000
)

// plan is a condenser as it would be configured.
type plan struct {
	name      string
	condenser condense.Condenser
}

// plans are what is measured for what it saves and keeps; the first does nothing.
func plans(r *run) []plan {
	shipped := condense.Settings{MaxSize: 240, MinTokens: 4000, MaxTokens: defaultLimit, KeepFirst: 2, MinimumProgress: 0.1}
	excerpts, summaries, half := shipped, shipped, shipped
	excerpts.Economics = &condense.Economics{Read: readPrice, Write: writePrice, Floor: floorTokens}
	summaries.Economics = &condense.Economics{Read: readPrice, Write: writePrice, In: 1, Out: outputPrice, Floor: floorTokens}
	llm := func(s condense.Settings) condense.Condenser {
		return condense.NewLLM(condense.LLMSettings{Settings: s, Summariser: r.standIn, Model: "stand-in", Window: modelWindow, MaxOutput: answeredTokens})
	}
	deep := shipped
	deep.MaxTokens = 2 * targetTokens
	late := above{condense.Excerpts{Settings: deep}, 64_000}
	trimmed := func(c condense.Condenser) condense.Condenser {
		return condense.Pipeline{Stages: []condense.Condenser{condense.LosslessTrim{}, c}}
	}
	return []plan{
		{"nothing", condense.Noop{}},
		{"`llm`, the default", llm(summaries)},
		{"`excerpts`, when the default would", condense.Excerpts{Settings: excerpts}},
		{"`lossless_trim`", condense.LosslessTrim{}},
		{"`lossless_trim`, the default", trimmed(llm(summaries))},
		{"`lossless_trim`, `excerpts`, when the default would", trimmed(condense.Excerpts{Settings: excerpts})},
		{"`excerpts`, 64,000 down to 24,000", late},
		{"`lossless_trim`, `excerpts`, 64,000 down to 24,000", trimmed(late)},
		{"`llm`, 96,000 down to 48,000", llm(half)},
	}
}

// above condenses only what has more tokens.
type above struct {
	condense.Condenser
	tokens int
}

func (a above) Condense(in condense.Input) condense.Decision {
	if in.Total <= a.tokens {
		return condense.Decision{}
	}
	return a.Condenser.Condense(in)
}

// bill is what a run cost under a plan, and what its actions still saw.
type bill struct {
	cost float64
	Counts
}

// Saved is what plans save and keep of runs that are played from their first action to their last, as lived.
type Saved struct {
	names []string
	steps []int    // of runs
	bills [][]bill // by run and plan
}

// MeasureSaved plays all runs under all plans.
func MeasureSaved(ctx context.Context, runs []replay.Run, counter Counter) (*Saved, error) {
	s := &Saved{steps: make([]int, len(runs)), bills: make([][]bill, len(runs))}
	for _, p := range plans(&run{}) {
		s.names = append(s.names, p.name)
	}
	var running errgroup.Group
	running.SetLimit(runtime.GOMAXPROCS(0))
	for i, recorded := range runs {
		running.Go(func() error {
			r, err := newRun(recorded, counter)
			if err != nil {
				return err
			}
			moments := r.actions(0)
			s.steps[i] = len(moments)
			for _, p := range plans(r) {
				b, err := p.play(ctx, moments, modelWindow/2, fixedTokens)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", recorded.Name, p.name, err)
				}
				s.bills[i] = append(s.bills[i], b)
			}
			return nil
		})
	}
	return s, running.Wait()
}

// play goes through the moments of a run. Each request finds in the prompt cache what it has in common with the one before it.
// Condensers go down to half of a budget. What each request repeats, the system prompt and tools, is so large at least.
func (p plan) play(ctx context.Context, moments []*moment, budget, repeated int) (b bill, err error) {
	var log journal
	var before []session.Item
	for i, m := range moments {
		if err := ctx.Err(); err != nil {
			return b, err
		}
		fixed := m.fixed(repeated)
		v, after, err := m.settle(p.condenser, log, budget, func(in *condense.Input) { in.Fixed, in.Total = fixed, in.Total+fixed })
		if err != nil { // the request goes on as it is
			v, after = m.project(log), log
		}
		cached, sent := common(before, v.Items), fixed
		read := min(i, 1) * fixed
		for k, n := range m.run.measure(v.Items) {
			if sent += n; k < cached {
				read += n
			}
		}
		b.cost += readPrice*float64(read) + writePrice*float64(sent-read) + outputPrice*float64(m.run.tokens[m.at])
		for _, c := range after[len(log):] {
			if c.Model != "" {
				b.cost += float64(c.ForgottenTokens+askedTokens) + outputPrice*answeredTokens
			}
		}
		b.Add(m.score(m.show(&v), budget))
		log, before = after, v.Items
	}
	return b, nil
}

// fixed is the tokens of tools that are made up where the system prompt is short.
func (m *moment) fixed(repeated int) int {
	n := repeated
	for i := range m.at {
		if m.run.messages[i].Kind == session.System {
			n -= m.run.tokens[i]
		}
	}
	return max(n, 0)
}

// common is how many items two views have in common at their beginning.
func common(a, b []session.Item) int {
	for i := range a {
		if i == len(b) || a[i].Index != b[i].Index || a[i].Summary != b[i].Summary || !bytes.Equal(a[i].Raw, b[i].Raw) {
			return i
		}
	}
	return len(a)
}

// Band is runs of a number of steps.
type Band struct {
	Name        string
	From, Below int
}

// Holds reports whether a run of so many steps is in the band.
func (b Band) Holds(steps int) bool { return b.From <= steps && steps < b.Below }

// Bands are short, middle and long runs.
func Bands() []Band {
	return []Band{{"short runs", 0, 20}, {"middle runs", 20, 80}, {"long runs", 80, math.MaxInt}}
}

// Markdown writes a row for each plan: what it saves and keeps of short, middle and long runs, and what the one run saves that fares worst.
func (s *Saved) Markdown(w io.Writer) {
	fmt.Fprint(w, "| condenser |")
	for _, b := range Bands() {
		fmt.Fprintf(w, " %s, %d from %d steps: saved | RR_mem |", b.Name, len(s.in(b)), b.From)
	}
	fmt.Fprintln(w, " worst run |\n|---|---|---|---|---|---|---|---|")
	for p, name := range s.names {
		fmt.Fprintf(w, "| %s |", name)
		worst := math.Inf(1)
		for _, band := range Bands() {
			var own, none bill
			for _, i := range s.in(band) {
				b, whole := s.bills[i][p], s.bills[i][0]
				own.add(b)
				none.add(whole)
				worst = min(worst, 1-b.cost/whole.cost)
			}
			if none.cost == 0 {
				fmt.Fprint(w, " – | – |")
				continue
			}
			fmt.Fprintf(w, " %+.1f%% | %.1f |", 100*(1-own.cost/none.cost), 100*metrics()[1].ratio(own.Counts))
		}
		fmt.Fprintf(w, " %+.1f%% |\n", 100*worst)
	}
	fmt.Fprintln(w)
}

func (b *bill) add(o bill) {
	b.cost += o.cost
	b.Add(o.Counts)
}

// in gives the runs of a band.
func (s *Saved) in(b Band) (runs []int) {
	for i, n := range s.steps {
		if b.Holds(n) {
			runs = append(runs, i)
		}
	}
	return runs
}
