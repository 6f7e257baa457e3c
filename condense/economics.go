package condense

import (
	"iter"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Economics decides by price when to condense. Without a condensation every request pays rent: what it costs to read again, from the
// provider's cache, the tokens that a condensed request would not have. With one the request pays more at once, mostly for writing anew
// what stands behind the change. It is bought as soon as the rent paid since the last one would have paid for it: the rule of the ski
// rental problem (Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy Caching, 1988), which never pays much more than one
// condensation for nothing, however the run goes on.
//
// Prices are for a token, all in the same unit.
type Economics struct {
	Read, Write float64       // of a prompt's tokens: of those that the cache has, and of others
	Answer      float64       // of what the request's own model writes
	In, Out     float64       // of the summariser's tokens; both 0: no model is asked
	Life        time.Duration // after which no idle prefix is in the cache any more; 0: not known
	Asked       bool          // a request may ask for another life
	Cached      int           // tokens that the cache has of the request, if its own model may be asked for the summary behind it; else 0
	Target      int           // tokens of a request after a condensation
}

// Prices gives those of a request's model and a summariser; nil where one of them is not known.
type Prices func(model, summariser string) *Economics

// Moment is a request at which a condensation may be bought, in tokens.
type Moment struct {
	Head   int  // at its beginning, before all that may be forgotten
	Before int  // that the request before it had
	Total  int  // that it has
	Cold   bool // the cache has nothing of it
}

// What a summary takes, in tokens: its instructions and its text.
const (
	askedTokens    = 600
	answeredTokens = 1000
)

// leastGain is how many times its target a request must have for a condensation by price.
const leastGain = 1.25

// Rent is what a request has paid for tokens that it would not have had after a condensation.
func (e Economics) Rent(tokens int) float64 { return e.Read * float64(max(tokens-e.Target, 0)) }

// Plain is what the prompt costs as it is.
func (e Economics) Plain(m Moment) float64 {
	if m.Cold {
		return e.prompt(0, m.Total)
	}
	return e.prompt(m.Before, m.Total)
}

// Condensed is what the prompt costs after a condensation, and that itself.
func (e Economics) Condensed(m Moment) float64 {
	own := 0.0
	if e.In > 0 || e.Out > 0 {
		own = e.In*float64(max(m.Total-e.Target, 0)+askedTokens) + e.Out*answeredTokens
	}
	if e.Cached > 0 && !m.Cold {
		own = min(own, e.ride(min(e.Cached, m.Before), m.Total))
	}
	if m.Cold {
		return own + e.prompt(0, e.Target)
	}
	return own + e.prompt(m.Head, e.Target)
}

// Extra is how much more a request costs with a condensation than without; less than nothing if it is cheaper at once.
func (e Economics) Extra(m Moment) float64 { return e.Condensed(m) - e.Plain(m) }

func (e Economics) prompt(cached, tokens int) float64 {
	return e.Read*float64(cached) + e.Write*float64(max(tokens-cached, 0))
}

// ride is what a summary costs that is asked for behind a prompt of which the cache has so many tokens.
func (e Economics) ride(cached, tokens int) float64 {
	return e.prompt(cached, tokens+askedTokens) + e.Answer*answeredTokens
}

// Due reports whether a condensation is worth its price at a moment, or a share of it, after so much rent. A moment at which it costs
// less than half of what it would cost at the next request is not let pass for the rent of a few requests.
func (e Economics) Due(rent float64, m Moment, share float64) bool {
	extra, next := e.Extra(m), e
	if e.Cached > 0 {
		next.Cached += m.Total - m.Before
	}
	if 2*extra < next.Extra(Moment{Head: m.Head, Before: m.Total, Total: m.Total}) {
		rent += chanceRequests * e.Rent(m.Total)
	}
	return float64(m.Total) > leastGain*float64(e.Target) && rent >= share*extra
}

// chanceRequests is how many requests are expected to follow one at which a condensation is cheap.
const chanceRequests = 2

// economic reports whether a condensation is due by price, or a share of the price, and what messages may then have.
func (s Settings) economic(in Input, share float64) (target int, due bool) {
	if s.Economics == nil || s.Economics.Read <= 0 || in.Total <= s.Economics.Target {
		return 0, false
	}
	e, m, rent := *s.Economics, Moment{Total: in.Total, Cold: s.Economics.cold(in.Thread)}, 0.0
	tokens := in.Measure(in.View.Items)
	for i, head := 0, s.KeepFirst; i < len(tokens) && (head > 0 || in.View.Items[i].Kind == session.System); i++ {
		if m.Head += tokens[i]; in.View.Items[i].Kind != session.System {
			head--
		}
	}
	m.Head += in.Fixed
	e.Target = max(e.Target, m.Head+e.Target/2)
	since := shownAtFirst(in.View)
	for i, sent := range in.requests(tokens) {
		if m.Before = sent; i >= since {
			rent += e.Rent(sent)
		}
	}
	return e.Target - in.Fixed, e.Due(rent, m, share)
}

// requests goes over those that came before, with how many tokens each had: what stands before its answer, whose place in the view is given.
func (in *Input) requests(tokens []int) iter.Seq2[int, int] {
	return func(yield func(at, sent int) bool) {
		sent := in.Fixed
		for i, item := range in.View.Items {
			if item.Index >= 0 && (item.Kind == session.Agent || item.Kind == session.Action) && !yield(i, sent) {
				return
			}
			sent += tokens[i]
		}
	}
}

// cold reports whether the cache has nothing of a history any more.
func (e *Economics) cold(t Thread) bool {
	life := e.Life
	if e.Asked && t.Keeps > 0 {
		life = t.Keeps
	}
	return life > 0 && t.Idle >= life
}

// shownAtFirst is how many items a view had after its last condensation: what follows them came since.
func shownAtFirst(v *session.View) int {
	for i := len(v.Applied) - 1; i >= 0; i-- {
		if len(v.Applied[i].Forgotten) > 0 {
			return v.Applied[i].After.Events
		}
	}
	return 0
}

// Pauses are what is known of clients that pause: how many pauses lasted until a prompt was to be touched for the n-th time, so that it stays
// in its provider's cache, and how many of those ended before the next time.
type Pauses struct{ reached, ended []int }

// Worth is what it saves to find a prompt in the cache, in prices of a touch, which reads it. One that would be condensed once it is cold is
// worth no more than that spares. A Target of 0 condenses nothing.
func (e Economics) Worth(tokens int) float64 {
	touch, cold := e.prompt(tokens, tokens), e.prompt(0, tokens)
	if touch <= 0 {
		return 0
	}
	if e.Target > 0 && float64(tokens) > leastGain*float64(e.Target) {
		cold = min(cold, e.Condensed(Moment{Total: tokens, Cold: true}))
	}
	return cold/touch - 1
}

// Touch reports whether a touch after so many others is expected to save more than it costs, which is then made: by how often clients came
// back after as many, at first taken to be every other time, and as long as all touches of a pause together cost no more than one return saves,
// however likely one is.
func (p *Pauses) Touch(before int, worth float64) bool {
	if float64(before+1) > worth {
		return false
	}
	for len(p.reached) <= before {
		p.reached, p.ended = append(p.reached, 0), append(p.ended, 0)
	}
	if float64(p.ended[before]+1)*worth <= float64(p.reached[before]+2) {
		return false
	}
	p.reached[before]++
	return true
}

// End notes that a client came back after so many touches.
func (p *Pauses) End(touches int) {
	if touches > 0 {
		p.ended[touches-1]++
	}
}
