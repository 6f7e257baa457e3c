package app

import (
	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
)

// fitted is a condenser some of whose settings follow the model of the request, whose window upstream may have corrected
// meanwhile: it is made for each request, which costs next to nothing.
type fitted struct {
	name string
	fit  func(in condense.Input) condense.Condenser
}

var _ condense.Condenser = fitted{}

func (f fitted) Name() string { return f.name }

func (f fitted) Condense(in condense.Input) condense.Decision { return f.fit(in).Condense(in) }

// settings are those of a rolling condenser for a request. The summariser is the request's own model where it has no name.
func (b builder) settings(c config.Condenser, in condense.Input, summariser *config.LLM) condense.Settings {
	s := condense.Settings{
		MaxSize: c.MaxSize, MaxTokens: c.MaxTokens, MinTokens: c.MinTokens, KeepFirst: c.KeepFirst, MinimumProgress: c.MinimumProgress,
		Margin: margin(in.Window), BackgroundAt: c.BackgroundAt,
	}
	if byPrice(c) {
		s.Economics = b.economics(in.Model, summariser)
	}
	return s
}

// target is what a condensation by price leaves of a request, in tokens: less is cheaper still, and knows less. See lab/economics.md.
const target = 24_000

// prices are those of a request's model and a summariser, nil where one of them is not known.
func (b builder) prices(name, summariser string) *condense.Economics {
	info, _ := b.config.ModelFor(summariser)
	if name != summariser && !info.Price.Known() {
		return nil
	}
	return b.economics(name, &config.LLM{Model: summariser})
}

// economics are the prices of a request's model and its summariser; nil where that of the model is not known. A summariser whose price is
// not known counts as the model.
func (b builder) economics(name string, summariser *config.LLM) *condense.Economics {
	info, known := b.config.ModelNamed(name)
	if !info.Price.Known() {
		return nil
	}
	e := &condense.Economics{
		Read: info.Price.CachedInput, Write: max(info.Price.Input, info.Price.CacheWrite), Answer: info.Price.Output, Target: target,
	}
	cache := model.CacheOf(known)
	e.Life, e.Asked = cache.Life, cache.Asked
	if summariser != nil {
		own := info.Price
		if other, _ := b.config.ModelFor(summariser.Model); other.Price.Known() {
			own = other.Price
		}
		e.In, e.Out = own.Input, own.Output
	}
	return e
}

// The share of a window that stays free, one in that many, and the least tokens of it: counts are not exact.
const (
	marginShare = 50
	leastMargin = 256
)

// margin is how many tokens stay free below a model's window. A tiny window keeps three quarters of itself.
func margin(window int) int { return min(max(window/marginShare, leastMargin), window/4) }

// room is what a summariser's model holds, and how much of that a summary may take, in tokens.
type room struct {
	window int // 0: what is known of the request's model
	output int
}

// room gives the summariser's room in a request. Where it is the request's own model, that is the request's.
func (b builder) room(llm config.LLM) func(in condense.Input) room {
	if llm.Model == "" {
		return func(in condense.Input) room {
			info, _ := b.config.ModelFor(in.Model)
			return roomIn(info, in.Window, llm.MaxOutput)
		}
	}
	info, _ := b.config.ModelFor(llm.Model)
	return func(in condense.Input) room {
		if in.Model == llm.Model {
			return roomIn(info, in.Window, llm.MaxOutput)
		}
		return roomIn(info, 0, llm.MaxOutput)
	}
}

// roomIn is the room in a model whose window was corrected if it is not 0. A summary takes what is configured, else the
// usual, but no more than the model writes, and at most a quarter of its window.
func roomIn(info model.Info, corrected, configured int) room {
	r := room{window: info.ContextWindow, output: configured}
	if corrected > 0 {
		r.window = min(r.window, corrected)
	}
	if r.output == 0 {
		r.output = min(condense.DefaultMaxOutput, info.MaxOutput, r.window/4)
	}
	return r
}
