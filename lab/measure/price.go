package main

import "fmt"

// price is what tokens of a prompt cost, with the agent's model's uncached, unwritten input as 1. What agents and
// summarisers write is not counted: the agents' answers are the same in every row.
type price struct {
	name        string
	read, write float64 // of a token that comes from the cache, and of one that does not
}

// condenserPrice is what an input token of the condenser's model costs.
const condenserPrice = 0.1

func prices() []price {
	return []price{
		{name: "no cache discount", read: 1, write: 1},
		{name: "10% reads, 125% writes", read: 0.1, write: 1.25},
		{name: "5% reads, 125% writes", read: 0.05, write: 1.25},
	}
}

// use is the tokens that a row used.
type use struct {
	sent      int // by the agents
	forwarded int
	cached    int // of those forwarded
	own       int // of the summariser's calls
}

func (p price) cost(u use) float64 {
	return p.read*float64(u.cached) + p.write*float64(u.forwarded-u.cached) + condenserPrice*float64(u.own)
}

// saving is how much less a row costs than another one, as a share of that; it may be negative.
func (p price) saving(u, than use) string {
	whole := p.cost(than)
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.1f%%", 100*(whole-p.cost(u))/whole)
}
