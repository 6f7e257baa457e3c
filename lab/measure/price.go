package main

import "fmt"

// price is what tokens cost, with an uncached, unwritten input token of the agent's model as 1.
type price struct {
	name        string
	read, write float64 // of a token that comes from the cache, and of one that does not
	summariser  float64 // of an input token of the summariser's model
}

// Of a summariser's answers the fake upstream's are no measure: they count as a real model's.
const (
	answerTokens = 1000
	outputPrice  = 5 // an output token costs so many times what an input token of the same model does
)

func prices() []price {
	return []price{
		{name: "no cache discount", read: 1, write: 1, summariser: 1},
		{name: "10% reads, 125% writes", read: 0.1, write: 1.25, summariser: 1},
		{name: "5% reads, 125% writes", read: 0.05, write: 1.25, summariser: 1},
		{name: "10% reads, cheap summariser", read: 0.1, write: 1.25, summariser: 0.1},
	}
}

// use is the tokens that a row used.
type use struct {
	sent      int // by the agents
	forwarded int
	cached    int // of those forwarded
	own       int // of the summariser's calls
	answers   int // of the summariser
	written   int // by the agents: the same in every row, and a part of what a run costs
	steps     int
}

func (u *use) add(o use) {
	u.sent += o.sent
	u.forwarded += o.forwarded
	u.cached += o.cached
	u.own += o.own
	u.answers += o.answers
	u.written += o.written
	u.steps += o.steps
}

func (p price) cost(u use) float64 {
	return p.read*float64(u.cached) + p.write*float64(u.forwarded-u.cached) + outputPrice*float64(u.written) +
		p.summariser*float64(u.own+outputPrice*answerTokens*u.answers)
}

// saving is how much less a row costs than another one, as a share of that; it may be negative.
func (p price) saving(u, than use) string {
	whole := p.cost(than)
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.1f%%", 100*(whole-p.cost(u))/whole)
}
