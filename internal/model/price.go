// Package model holds what is known of models.
package model

import "math"

// million is what a price is for, in tokens.
const million = 1e6

// Price is what a model costs, in USD per million tokens. The zero Price means that it is not known.
type Price struct {
	Input       float64 `yaml:"input"`
	CachedInput float64 `yaml:"cached_input"`
	CacheWrite  float64 `yaml:"cache_write"`
	Output      float64 `yaml:"output"`
}

// Known reports whether the price is known.
func (p Price) Known() bool { return p.Input > 0 }

// Nano is a sum in billionths of a dollar.
func Nano(usd float64) int64 { return int64(math.Round(usd * 1e9)) }

// Usage is what a call used, in tokens, as session.Usage has it.
type Usage struct {
	Input, Cached, Output int // cached tokens are a part of the input

	Written, WrittenLong int // parts of the input that were written to a cache at a price of their own, and those of them for an hour
}

// Call is what a call cost, in USD.
func (p Price) Call(u Usage) float64 {
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	written := min(max(u.Written, 0), max(u.Input-cached, 0))
	long := min(max(u.WrittenLong, 0), written)
	fresh := u.Input - cached - written
	return (p.Input*float64(fresh) + p.CachedInput*float64(cached) + max(p.CacheWrite, p.Input)*float64(written-long) +
		longWrite*p.Input*float64(long) + p.Output*float64(u.Output)) / million
}

// Prompt says how a prompt changed before it was sent, in tokens.
type Prompt struct {
	NotSent   float64 // fewer than there would have been
	Rewritten float64 // that the provider's cache would have had, and that it had to take as new
	Caching   bool    // what is not in the cache is written to it
	Long      float64 // the share of that which is written for an hour, at longWrite
}

// longWrite is what Anthropic takes for writing to the cache for an hour, in prices of input.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
const longWrite = 2

// Saved values what was saved of a prompt, in USD. What was not sent is valued as cached, the cheapest that it could have
// been: so a provider's own discount never counts as saved. Rewrites are a cost, and negative.
func (p Price) Saved(c Prompt) (notSent, rewrites float64) {
	fresh := p.Input
	if c.Caching {
		fresh = max(p.CacheWrite, p.Input)
		fresh += c.Long * max(longWrite*p.Input-fresh, 0)
	}
	return c.NotSent * p.CachedInput / million, -c.Rewritten * (fresh - p.CachedInput) / million
}
