// Package model holds facts about models: context windows, prices, encodings, and how providers cache prompts.
package model

import "math"

// million is the number of tokens that a price is for.
const million = 1e6

// Price is the price of a model in USD per million tokens. The zero Price is an unknown one.
type Price struct {
	Input       float64 `yaml:"input"`
	CachedInput float64 `yaml:"cached_input"`
	CacheWrite  float64 `yaml:"cache_write"`
	Output      float64 `yaml:"output"`

	Long Tier `yaml:"-"` // of the built-in table only
}

// Tier is what a whole call costs whose prompt is long. The zero Tier is none.
type Tier struct {
	Above                      int // tokens of the prompt
	Input, CachedInput, Output float64
}

// For returns the price of a call whose prompt has this many tokens.
func (p Price) For(prompt int) Price {
	if t := p.Long; t.Above > 0 && prompt > t.Above {
		return Price{Input: t.Input, CachedInput: t.CachedInput, CacheWrite: t.Input, Output: t.Output}
	}
	return p
}

// Known reports whether the price is known.
func (p Price) Known() bool { return p.Input > 0 }

// Nano converts an amount in USD to billionths of a dollar.
func Nano(usd float64) int64 { return int64(math.Round(usd * 1e9)) }

// Usage is the usage of one call in tokens, as in session.Usage.
type Usage struct {
	Input, Cached, Output int // Cached is a part of Input

	Written     int // part of Input that was written to the cache, at its own price
	WrittenLong int // part of Written that is cached for an hour
}

// Call returns the cost of a call in USD.
func (p Price) Call(u Usage) float64 {
	p = p.For(u.Input)
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	written := min(max(u.Written, 0), max(u.Input-cached, 0))
	long := min(max(u.WrittenLong, 0), written)
	fresh := u.Input - cached - written
	return (p.Input*float64(fresh) + p.CachedInput*float64(cached) + max(p.CacheWrite, p.Input)*float64(written-long) +
		longWrite*p.Input*float64(long) + p.Output*float64(u.Output)) / million
}

// Pico returns the cost of a call in trillionths of a dollar. It is exact for prices given to a millionth of a dollar.
func (p Price) Pico(u Usage) int64 {
	p = p.For(u.Input)
	perToken := func(usd float64) int64 { return int64(math.Round(usd * million)) } // of a token, from the price of a million
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	written := min(max(u.Written, 0), max(u.Input-cached, 0))
	long := min(max(u.WrittenLong, 0), written)
	fresh := max(u.Input, 0) - cached - written
	return perToken(p.Input)*int64(fresh) + perToken(p.CachedInput)*int64(cached) + perToken(max(p.CacheWrite, p.Input))*int64(written-long) +
		longWrite*perToken(p.Input)*int64(long) + perToken(p.Output)*int64(max(u.Output, 0))
}

// Prompt describes how a prompt was changed before it was sent, in tokens.
type Prompt struct {
	Full      int     // tokens of the prompt before that
	NotSent   float64 // tokens removed
	Rewritten float64 // tokens that the cache would have had, but were read as new; negative if it would not have had all of the tokens removed
	Caching   bool    // new tokens are written to the cache
	Long      float64 // the share of new tokens that is written for an hour, at longWrite times the input price
}

// longWrite is Anthropic's price for writing to the cache for an hour, as a multiple of the price of input.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
const longWrite = 2

// Saved returns the value of a prompt's changes in USD. Tokens that were not sent are valued at the price of cached tokens, the lowest that
// they could have cost, so that a provider's own discount never counts as a saving. rewrites is negative if cached tokens were read as new,
// and positive if tokens that were not sent would not have been cached. If the prompt would have been a long one and is none any more, the tokens that
// were sent have saved the difference between the two prices of cached tokens as well.
func (p Price) Saved(c Prompt) (notSent, rewrites float64) {
	long := p.For(c.Full)
	sent := max(float64(c.Full)-c.NotSent, 0)
	p = p.For(int(sent))
	fresh := p.Input
	if c.Caching {
		fresh = max(p.CacheWrite, p.Input)
		fresh += c.Long * max(longWrite*p.Input-fresh, 0)
	}
	return (c.NotSent*long.CachedInput + sent*(long.CachedInput-p.CachedInput)) / million, -c.Rewritten * (fresh - p.CachedInput) / million
}
