package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// measureEconomics reckons what runs cost under rules that condense by price or by size, next to the least that they could cost, compares
// the reckoning with what the proxy does, and writes both tables to out or into a document. Recorded runs are taken along where they are named.
func measureEconomics(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("economics", flag.ContinueOnError)
	doc := fs.String("doc", "", "document to put the table into")
	seed := fs.Uint64("seed", 1, "of the runs that are made up")
	each := fs.Int("runs", 40, "of each length")
	if err := fs.Parse(args); err != nil {
		return err
	}
	count, err := newCounter()
	if err != nil {
		return err
	}
	groups := synthetic(*seed, *each)
	if fs.NArg() > 0 {
		recorded, err := runs(fs)
		if err != nil {
			return err
		}
		g := group{name: "recorded"}
		random := rand.New(rand.NewPCG(*seed, 0))
		for _, r := range recorded {
			g.runs = append(g.runs, sized(r, count, random))
		}
		groups = append(groups, g)
	}
	var table bytes.Buffer
	writeEconomics(&table, reckon(groups))
	compared, err := compare(ctx, longRun(agreedSteps), count, priceSets())
	if err != nil {
		return err
	}
	writeCompared(&table, compared)
	return publish(out, measured, *doc, table.String())
}

// priced is a model and how it is condensed, by price. Prices are in those of an input token.
type priced struct {
	name                 string
	read, write, in, out float64
	reuse                bool // summaries are asked behind the request
}

func priceSets() []priced {
	return []priced{
		{"10% reads, 125% writes, excerpts", 0.1, 1.25, 0, 0, false},
		{"10% reads, 125% writes, cheap summariser", 0.1, 1.25, 0.05, 0.25, false},
		{"10% reads, excerpts", 0.1, 1, 0, 0, false},
		{"10% reads, own summaries", 0.1, 1, 1, 5, false},
		{"10% reads, own summaries behind the prompt", 0.1, 1, 1, 5, true},
		{"25% reads, excerpts", 0.25, 1, 0, 0, false},
		{"50% reads, excerpts", 0.5, 1, 0, 0, false},
		{"5% reads, 125% writes, excerpts", 0.05, 1.25, 0, 0, false},
		{"no cache, excerpts", 1, 1, 0, 0, false},
	}
}

// Sizes of the runs that are made up, in tokens, after what recorded runs have.
const (
	fixedTokens  = 12_000 // system prompt and tools
	targetTokens = 24_000
	largestStep  = 30_000
	idleShare    = 0.03 // of steps that come after the cache has gone cold
	resultShare  = 0.8  // of a step that tools returned
)

// sizes is a run as its provider bills it: what each step adds, and whether the cache has gone cold before it.
type sizes struct {
	fixed   int
	steps   []int
	results []int // of a step, what tools returned
	cold    []bool
}

type group struct {
	name string
	runs []sizes
}

// synthetic makes runs up, of four lengths.
func synthetic(seed uint64, each int) (groups []group) {
	random := rand.New(rand.NewPCG(seed, 1))
	for _, length := range []int{20, 60, 150, 300} {
		g := group{name: fmt.Sprintf("%d steps", length)}
		for range each {
			r := sizes{fixed: fixedTokens}
			for i := range length {
				step := min(int(math.Exp(6.2+1.1*random.NormFloat64())), largestStep)
				r.steps = append(r.steps, step)
				r.results = append(r.results, int(resultShare*float64(step)))
				r.cold = append(r.cold, i > 0 && random.Float64() < idleShare)
			}
			g.runs = append(g.runs, r)
		}
		groups = append(groups, g)
	}
	return groups
}

// sized is a recorded run. When its cache went cold was not recorded: that is made up.
func sized(run replay.Run, count func([]byte) int, random *rand.Rand) sizes {
	r := sizes{fixed: fixedTokens}
	added, results := 0, 0
	for i, m := range run.Messages {
		n := count(m)
		added += n
		if roleOf(m) == "tool" {
			results += n
		}
		if roleOf(m) == "assistant" || i == len(run.Messages)-1 {
			r.steps, r.results = append(r.steps, added), append(r.results, results)
			r.cold = append(r.cold, len(r.cold) > 0 && random.Float64() < idleShare)
			added, results = 0, 0
		}
	}
	return r
}

// moment is a request of a run, whose context was as large before.
func (r *sizes) moment(i, before int) condense.Moment {
	return condense.Moment{Head: r.fixed, Before: before, Total: before + r.steps[i], Cold: r.cold[i]}
}

// rule says what a run costs, and the most that one of its condensations cost above none. It knows nothing of the steps that follow.
type rule struct {
	name string
	cost costing
}

type costing func(r *sizes, e condense.Economics) (total, dearest float64)

func rules() []rule {
	return []rule{
		{"none", rolling(to(targetTokens), never)},
		{"above 40,000", rolling(to(targetTokens), above(40_000))},
		{"above 80,000", rolling(to(40_000), above(80_000))},
		{"above 160,000", rolling(to(80_000), above(160_000))},
		{masking, (*sizes).masked},
		{economics, rolling(to(targetTokens), byPrice)},
	}
}

const (
	economics = "economics"
	masking   = "masking"
)

// due reports whether a request is condensed.
type due func(e condense.Economics, rent float64, m condense.Moment) bool

func never(condense.Economics, float64, condense.Moment) bool { return false }

func above(limit int) due {
	return func(_ condense.Economics, _ float64, m condense.Moment) bool { return m.Total > limit }
}

func byPrice(e condense.Economics, rent float64, m condense.Moment) bool {
	return m.Total > e.Floor && e.Due(rent, m, 1)
}

// target is the size to which a rule condenses at a step, where all messages so far, hidden ones included, have so many tokens.
type target func(r *sizes, step, history int) int

// to is a target that is always the same.
func to(tokens int) target { return func(*sizes, int, int) int { return tokens } }

// halfOf is the target of a limit: half of what it leaves to messages.
func halfOf(limit int) target {
	return func(r *sizes, _, _ int) int { return r.fixed + max(limit-r.fixed, 0)/2 }
}

// remembering is the target by price: what must stay, which is the first and the newest step, and the room for memory, for which all messages count.
func remembering(r *sizes, step, history int) int {
	return r.fixed + r.steps[0] + r.steps[step] + condense.Memory(r.fixed+history)
}

// rolling condenses down to a target whenever it is due.
func rolling(to target, due due) costing {
	return func(r *sizes, e condense.Economics) (total, dearest float64) {
		context, history := r.fixed, 0
		var since []int // sizes of the requests since the newest condensation
		for i, step := range r.steps {
			history += step
			e.Target = to(r, i, history)
			rent := 0.0
			for _, sent := range since {
				rent += e.Rent(sent)
			}
			m := r.moment(i, context)
			if due(e, rent, m) {
				total, dearest, context = total+e.Condensed(m), max(dearest, e.Extra(m)), e.Target
				since = since[:0]
				continue
			}
			total, context, since = total+e.Plain(m), m.Total, append(since, m.Total)
		}
		return total, dearest
	}
}

// As observation_masking comes: it shows the newest results, and moves the boundary by several steps at once. A step is a call and its result.
const (
	shownSteps  = 50
	strideSteps = 5
	stubTokens  = 20
)

// masked is what a run costs whose old results are masked.
func (r *sizes) masked(e condense.Economics) (total, dearest float64) {
	e.In, e.Out = 0, 0
	context, hidden := r.fixed, 0 // tokens of the request before, and steps whose result it did not show
	for i, step := range r.steps {
		m := r.moment(i, context)
		upTo := max(i+1-shownSteps, 0) / strideSteps * strideSteps
		if upTo == hidden {
			total, context = total+e.Plain(m), m.Total
			continue
		}
		m.Head = r.upTo(hidden, hidden) // what is still as it was
		for context += step; hidden < upTo; hidden++ {
			context -= max(r.results[hidden]-stubTokens, 0)
		}
		e.Target = context
		total, dearest = total+e.Condensed(m), max(dearest, e.Extra(m))
	}
	return total, dearest
}

// upTo is the tokens up to a step, with so many steps masked.
func (r *sizes) upTo(step, hidden int) int {
	total := r.fixed
	for i, tokens := range r.steps[:step] {
		if total += tokens; i < hidden {
			total -= max(r.results[i]-stubTokens, 0)
		}
	}
	return total
}

// least is what a run costs at least, by dynamic programming over the steps at which it is condensed: for who knows all that follows.
func (r *sizes) least(e condense.Economics) float64 {
	after := make([]float64, len(r.steps)) // the least that the steps after a condensation cost
	rest := func(from, context int) float64 {
		soFar, best := 0.0, math.Inf(1)
		for i := from; i < len(r.steps); i++ {
			m := r.moment(i, context)
			if m.Total > e.Target {
				best = min(best, soFar+e.Condensed(m)+after[i])
			}
			soFar, context = soFar+e.Plain(m), m.Total
		}
		return min(best, soFar)
	}
	for i := len(after) - 1; i >= 0; i-- {
		after[i] = rest(i+1, e.Target)
	}
	return rest(0, r.fixed)
}

// ratio is the cost of runs under a rule as a multiple of the least.
type ratio struct {
	sum, worst float64
	n          int
	over       float64 // the most by which a run costs more than with none, in condensations
}

func (t ratio) mean() float64 { return t.sum / float64(max(t.n, 1)) }

// reckoned is the ratios of a price set, by rule.
type reckoned struct {
	prices string
	group  string
	by     map[string]ratio
}

func reckon(groups []group) (all []reckoned) {
	for _, p := range priceSets() {
		e := condense.Economics{Read: p.read, Write: p.write, Answer: outputPrice, In: p.in, Out: p.out, Target: targetTokens}
		if p.reuse {
			e.Cached = math.MaxInt32 // all of each request
		}
		for _, g := range groups {
			played := rules()
			row := reckoned{p.name, g.name, map[string]ratio{}}
			for i := range g.runs {
				r := &g.runs[i]
				least := r.least(e)
				none, _ := played[0].cost(r, e)
				for _, x := range played {
					cost, dearest := x.cost(r, e)
					t := row.by[x.name]
					t.sum, t.worst, t.n = t.sum+cost/least, max(t.worst, cost/least), t.n+1
					if dearest > 0 {
						t.over = max(t.over, (cost-none)/dearest)
					}
					row.by[x.name] = t
				}
			}
			all = append(all, row)
		}
	}
	return all
}

func writeEconomics(w io.Writer, rows []reckoned) {
	fmt.Fprint(w, "| prices | runs |")
	for _, x := range rules() {
		fmt.Fprintf(w, " %s |", x.name)
	}
	fmt.Fprint(w, " worst run | over none |\n|---|---|")
	for range rules() {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w, "---|---|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s |", r.prices, r.group)
		for _, x := range rules() {
			fmt.Fprintf(w, " %.2f |", r.by[x.name].mean())
		}
		fmt.Fprintf(w, " %.2f | %.2f |\n", r.by[economics].worst, max(r.by[economics].over, 0))
	}
}
