package condense

import (
	"iter"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Economics decides by price when to condense. Without a condensation every request pays rent: the price of reading, from
// the provider's cache, the tokens that a condensed request would not have. A condensation costs more at once, mostly for
// writing what follows the change to the cache again. It is made as soon as the rent paid since the last one would have paid
// for it, with some caution. This is the rule of the ski rental problem (Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy Caching,
// 1988), which never wastes much more than the price of one condensation, however the run continues.
//
// Prices are per token, all in the same unit.
type Economics struct {
	Read, Write float64       // prompt tokens that are cached, and others
	Answer      float64       // output tokens of the request's own model
	In, Out     float64       // input and output tokens of the summariser; both 0: no model is called
	Life        time.Duration // lifetime of an idle prefix in the cache; 0: not known
	Asked       bool          // a request may ask for another lifetime
	Cached      int           // cached tokens of the request if its own model may be asked for the summary behind it, else 0
	Floor       int           // tokens of the largest request that is never condensed
	Edge        int           // tokens above which a whole request is charged at a higher price; 0: none
	Target      int           // tokens of a request after a condensation; Settings work it out
}

// Prices returns the prices of a request's model and a summariser, or nil if one of them is not known.
type Prices func(model, summariser string) *Economics

// Moment describes a request at which a condensation may be made, in tokens.
type Moment struct {
	Head   int  // its beginning, before everything that may be hidden
	Before int  // size of the request before it
	Total  int  // its size
	Cold   bool // nothing of it is cached
}

// Size of a summary in tokens: its instructions, and its text.
const (
	askTokens    = 600
	answerTokens = 1000
)

// minGain is the minimum size of a request, relative to the target, for a condensation by price.
const minGain = 1.25

// Rent returns what a request of this size pays for tokens that it would not have after a condensation.
func (e Economics) Rent(tokens int) float64 { return e.Read * float64(max(tokens-e.Target, 0)) }

// Plain returns the price of the prompt without a condensation.
func (e Economics) Plain(m Moment) float64 {
	if m.Cold {
		m.Before = 0
	}
	return e.prompt(m.Before, m.Total)
}

// Condensed returns the price of the prompt after a condensation, plus that of the condensation.
func (e Economics) Condensed(m Moment) float64 { return e.Summary(m) + e.rewritten(m) }

// rewritten returns the price of the prompt after a condensation.
func (e Economics) rewritten(m Moment) float64 {
	if m.Cold {
		m.Head = 0
	}
	return e.prompt(m.Head, e.Target)
}

// Summary returns the price of the call for a summary, 0 if no model is called.
func (e Economics) Summary(m Moment) float64 {
	if e.In <= 0 && e.Out <= 0 {
		return 0
	}
	summary := e.In*float64(max(m.Total-e.Target, 0)+askTokens) + e.Out*answerTokens
	if !m.Cold && e.Cached > 0 {
		return min(summary, e.reuse(min(e.Cached, m.Before), m.Total))
	}
	return summary
}

// Extra returns how much more a request costs with a condensation than without; negative if it saves money at once.
func (e Economics) Extra(m Moment) float64 { return e.Condensed(m) - e.Plain(m) }

func (e Economics) prompt(cached, tokens int) float64 {
	return e.Read*float64(cached) + e.Write*float64(max(tokens-cached, 0))
}

// reuse returns the price of a summary that is asked for behind a prompt with the given number of cached tokens.
func (e Economics) reuse(cached, tokens int) float64 {
	return e.prompt(cached, tokens+askTokens) + e.Answer*answerTokens
}

// Due reports whether the rent paid has reached the price of a condensation and its risk, times share. The rent of a few requests to come
// counts as paid if the condensation now costs less than half of what it would cost at the next request.
func (e Economics) Due(rent float64, m Moment, share float64) bool {
	extra := e.Extra(m)
	next := e // at the next request
	if e.Cached > 0 {
		next.Cached += m.Total - m.Before
	}
	if 2*extra < next.Extra(Moment{Head: m.Head, Before: m.Total, Total: m.Total}) {
		rent += chanceRequests * e.Rent(m.Total)
	}
	price := extra + e.risk(m)
	due := rent >= share*price
	if share < 1 { // at least a few requests before it is due
		due = due || rent+aheadRequests*e.Rent(m.Total) >= price
	}
	if share >= 1 && e.Edge > 0 && m.Total > e.Edge && e.Target <= e.Edge { // each further request would cost a multiple
		due = true
	}
	return float64(m.Total) > minGain*float64(e.Target) && due
}

// risk returns what a condensation may cost later: what it hides may have to be read again, and a run that ends soon never earns it back.
// That is reckoned to be as much as the prompt costs more at once, without a summary.
func (e Economics) risk(m Moment) float64 { return max(e.rewritten(m)-e.Plain(m), 0) }

// chanceRequests is the number of requests expected to follow one at which a condensation is cheap.
const chanceRequests = 2

// aheadRequests is how many requests before a condensation its summary is asked for, at least, so that it is there in time.
const aheadRequests = 3

// economic reports whether a condensation is due by price, times share, and the tokens that messages may have then: those that must stay, and
// the room for memory.
func (s Settings) economic(in Input, share float64) (target int, due bool) {
	if s.Economics == nil || s.Economics.Read <= 0 || in.Total <= s.Economics.Floor {
		return 0, false
	}
	tokens := in.Measure(in.View.Items)
	e, memory := *s.Economics, in.memory(tokens)
	m := Moment{Head: s.head(in, tokens), Total: in.Total, Cold: e.cold(in.Thread)}
	e.Target = m.Head + memory
	if !e.dueFor(&in, tokens, m, share) { // more to stay would only make it less worthwhile
		return 0, false
	}
	e.Target = max(e.Target, in.Fixed+s.stays(&in, tokens)+memory)
	return e.Target - in.Fixed, e.dueFor(&in, tokens, m, share)
}

// head returns the tokens of a request before everything that may be hidden. As in picker.head, it ends where messages were hidden before.
func (s Settings) head(in Input, tokens []int) int {
	n, left := in.Fixed, s.KeepFirst
	for i, item := range in.View.Items {
		if item.Kind != session.System {
			if left <= 0 || item.Index < 0 {
				break
			}
			left--
		}
		n += tokens[i]
	}
	return n
}

// dueFor reports whether a condensation of a view is due.
func (e Economics) dueFor(in *Input, tokens []int, m Moment, share float64) bool {
	rent := 0.0
	since := shownAtFirst(in.View)
	for i, sent := range in.requests(tokens) {
		m.Before = sent
		if i >= since {
			rent += e.Rent(sent)
		}
	}
	return e.Due(rent, m, share)
}

// earned reports whether the requests since the newest condensation have saved, net of writing the cache again, what a summary would cost now. Until
// then a run has no summaries: most of the runs that would pay for one before end too early to use it.
func (s Settings) earned(in Input) bool {
	e, tokens := *s.Economics, in.Measure(in.View.Items)
	e.Target = in.Fixed + in.memory(tokens)
	hidden, written := 0, 0
	for i := range in.View.Applied {
		if c := &in.View.Applied[i]; len(c.Forgotten) > 0 {
			hidden += max(c.Before.Tokens-c.After.Tokens, 0)
			written = c.After.Tokens
		}
	}
	m, since, n := Moment{Total: in.Total, Cold: e.cold(in.Thread)}, shownAtFirst(in.View), 0
	for i, sent := range in.requests(tokens) {
		m.Before = sent
		if i >= since {
			n++
		}
	}
	saved := float64(n)*e.Read*float64(hidden) - (e.Write-e.Read)*float64(max(written-in.Fixed, 0))
	return saved >= e.Summary(m)
}

// requests iterates over earlier requests: the index of the answer in the view, and the tokens before it.
func (in *Input) requests(tokens []int) iter.Seq2[int, int] {
	return func(yield func(at, sent int) bool) {
		sent := in.Fixed
		for i, item := range in.View.Items {
			if item.Index >= 0 && item.Kind.ByModel() && !yield(i, sent) {
				return
			}
			sent += tokens[i]
		}
	}
}

// cold reports whether nothing of a history is cached any more.
func (e *Economics) cold(t Thread) bool {
	life := e.Life
	if e.Asked && t.CacheFor > 0 {
		life = t.CacheFor
	}
	return life > 0 && t.Idle >= life
}

// shownAtFirst returns the number of items that a view had after its last condensation, not counting one that only replaced
// excerpts by their summary. The rest came later.
func shownAtFirst(v *session.View) int {
	first := 0
	var hidden []session.Range
	for i := range v.Applied {
		c := &v.Applied[i]
		if len(c.Forgotten) > 0 && !slices.Equal(c.Forgotten, hidden) {
			first, hidden = c.After.Events, c.Forgotten
		}
	}
	return first
}
