package session

import "time"

// Cost is what calls of summarisers came to.
type Cost struct {
	Calls    int           // that were made, be it in vain
	Took     time.Duration // to make the condensations that they were for
	Used     Usage
	Nano     int64  // billionths of a dollar
	Unpriced string // a model whose price is not known; empty: there is none
}

// Add adds what other calls came to.
func (c *Cost) Add(more Cost) {
	c.Calls += more.Calls
	c.Took += more.Took
	c.Used.Input += more.Used.Input
	c.Used.Cached += more.Used.Cached
	c.Used.Output += more.Used.Output
	c.Nano += more.Nano
	if more.Unpriced != "" {
		c.Unpriced = more.Unpriced
	}
}

// Savings is what condensing saved of a thread's answered requests, and what it cost, whatever became of it.
type Savings struct {
	Tokens    int64 // of prompts, fewer than their client sent; negative: more
	NotSent   int64 // what those would have cost, in billionths of a dollar
	Rewritten int64 // likewise, what prompt caches cost that had to be written again: negative
	Cost
}

// Add adds what came later.
func (s *Savings) Add(more Savings) {
	s.Tokens += more.Tokens
	s.NotSent += more.NotSent
	s.Rewritten += more.Rewritten
	s.Cost.Add(more.Cost)
}
