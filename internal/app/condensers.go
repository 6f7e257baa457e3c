package app

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

// builder makes the condensers of one tenant.
type builder struct {
	config   *config.Config
	out      *calls
	tenant   string
	upstream config.Upstream
	base     string             // its URL as requests name it
	health   *summariser.Tenant // of the models
	limits   limit.Tenant
	rides    *condense.Rides // of all stages
	batched  bool            // stages that change old results do so only when something is condensed
}

// condenser makes the condenser of a key of the configuration, with its per_model.
func (b builder) condenser(key string, c config.Condenser) (condense.Condenser, error) {
	usual, err := b.plain(key, c)
	if err != nil || len(c.PerModel) == 0 {
		return usual, err
	}
	own := map[string]condense.Condenser{}
	for name, override := range c.PerModel {
		if own[name], err = b.plain(key, c.With(override)); err != nil {
			return nil, err
		}
	}
	return fitted{usual.Name(), func(in condense.Input) condense.Condenser { return ofModel(in.Model, own, usual) }}, nil
}

// ofModel chooses by the model that a request names: by the exact name, else by its longest prefix, which ends in a *, else what is usual.
func ofModel(model string, own map[string]condense.Condenser, usual condense.Condenser) condense.Condenser {
	if exact, ok := own[model]; ok {
		return exact
	}
	longest := ""
	for name, c := range own {
		if prefix, is := strings.CutSuffix(name, "*"); is && strings.HasPrefix(model, prefix) && len(name) > len(longest) {
			longest, usual = name, c
		}
	}
	return usual
}

// plain makes a condenser without per_model.
func (b builder) plain(key string, c config.Condenser) (condense.Condenser, error) {
	switch c.Type {
	case config.TypeNoop:
		return condense.Noop{}, nil
	case config.TypeObservationMasking:
		return condense.ObservationMasking{AttentionWindow: c.AttentionWindow, Stride: c.Stride, Batched: b.batched}, nil
	case config.TypeBrowserOutput:
		return condense.BrowserOutput{AttentionWindow: c.AttentionWindow, Batched: b.batched}, nil
	case config.TypeRecentEvents:
		return condense.RecentEvents{KeepFirst: c.KeepFirst, MaxEvents: c.MaxEvents}, nil
	case config.TypeConversationWindow:
		return condense.ConversationWindow{}, nil
	case config.TypeToolOutputTrim:
		return condense.ToolOutputTrim{MaxEventLength: c.MaxEventLength}, nil
	case config.TypeLosslessTrim:
		return condense.LosslessTrim{}, nil
	case config.TypeAmortizedForgetting:
		return fitted{c.Type, func(in condense.Input) condense.Condenser {
			return condense.AmortizedForgetting{Settings: b.settings(c, in, nil)}
		}}, nil
	case config.TypeExcerpts:
		return fitted{c.Type, func(in condense.Input) condense.Condenser { return condense.Excerpts{Settings: b.settings(c, in, nil)} }}, nil
	case config.TypeLLM, config.TypeStructuredSummary, config.TypeLLMAttention:
		return b.calling(key, c)
	case config.TypeCustom:
		return b.custom(key, c)
	case config.TypePipeline:
		return b.pipeline(key, c)
	}
	return nil, fmt.Errorf("%s.type: %q is not a condenser type", key, c.Type)
}

func (b builder) pipeline(key string, c config.Condenser) (condense.Condenser, error) {
	var p condense.Pipeline
	b.batched = b.batched || c.Uses(byPrice) // a change in between would have all that follows it written to the cache anew
	for i, stage := range c.Condensers {
		made, err := b.condenser(fmt.Sprintf("%s.condensers[%d]", key, i), stage)
		if err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, made)
	}
	return p, nil
}

// byPrice reports whether a stage condenses where that is worth its price.
func byPrice(c config.Condenser) bool { return c.Trigger == config.TriggerEconomics }

// calling makes a condenser that calls a model.
func (b builder) calling(key string, c config.Condenser) (condense.Condenser, error) {
	llm, known := b.config.LLMFor(c.LLMConfig, b.upstream)
	if !known {
		return nil, fmt.Errorf("%s.llm_config: %q is not one of llms", key, c.LLMConfig)
	}
	to := endpoint(llm)
	if to.BaseURL == b.upstream.BaseURL {
		to.BaseURL = b.base // the client's own key goes to where its requests go and nowhere else: that URL must be spelled as theirs is
	}
	caller := b.out.model(cmp.Or(c.Timeout, llm.Timeout), llm.Temperature)
	common := condense.LLMSettings{
		Summariser: b.noted(observe.Summariser{Summariser: b.spending(caller, llm.APIKey, b.upstream.APIKey)}),
		Endpoint:   to, Model: llm.Model, Health: b.health, MaxEventLength: c.MaxEventLength,
	}
	if b.upstream.APIKey != "" || llm.APIKey == "" && llm.BaseURL == b.upstream.BaseURL { // who pays for summaries pays for the requests, too
		common.Rides = b.rides
	}
	if c.Focus != config.FocusAuto {
		common.Focus = condense.Focus(c.Focus)
	}
	return fitted{c.Type, func(in condense.Input) condense.Condenser {
		s := common
		s.Settings = b.settings(c, in, &llm)
		s.Window, s.MaxOutput = b.room(llm, in)
		switch c.Type {
		case config.TypeStructuredSummary:
			return condense.NewStructured(s)
		case config.TypeLLMAttention:
			return condense.NewAttention(s)
		}
		return condense.NewLLM(s)
	}}, nil
}

// custom makes a condenser that asks a program or a service.
func (b builder) custom(key string, c config.Condenser) (condense.Condenser, error) {
	var asked condense.Summariser = summariser.Service{Client: b.out.client(), URL: c.URL, Key: c.Key(), Timeout: c.Timeout}
	to := condense.Endpoint{BaseURL: c.URL, APIKey: c.Key()}
	if len(c.Command) > 0 {
		if _, err := exec.LookPath(c.Command[0]); err != nil {
			return nil, fmt.Errorf("%s.command: %w", key, err)
		}
		asked = summariser.Program{Command: c.Command, Timeout: c.Timeout}
		to.BaseURL = "file:" + strings.Join(c.Command, " ")
	}
	common := condense.LLMSettings{
		Summariser: b.noted(observe.Summariser{Summariser: b.spending(asked, config.Secret(to.APIKey)), NoModel: true}),
		Endpoint:   to, Health: b.health,
	}
	return fitted{c.Type, func(in condense.Input) condense.Condenser {
		s := common
		s.Settings = b.settings(c, in, nil)
		return condense.NewCustom(s)
	}}, nil
}

// endpoint is where a model is.
func endpoint(llm config.LLM) condense.Endpoint {
	return condense.Endpoint{BaseURL: llm.BaseURL, APIKey: llm.APIKey.Reveal(), Way: condense.Way{API: llm.API}}
}

// noted makes a summariser one whose calls are taken note of.
func (b builder) noted(s observe.Summariser) condense.Summariser {
	if b.out.metrics == nil {
		return s.Summariser
	}
	s.Tenant, s.Metrics, s.Spans, s.Models = b.tenant, b.out.metrics, b.out.spans, models(b.config)
	return s
}

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

// room is what a summariser's model holds, and how much of that a summary may take, in tokens. Where it is the request's own model, upstream
// may have corrected its window. A summary takes what is configured, else the usual, but no more than the model writes, and at most a quarter
// of its window.
func (b builder) room(llm config.LLM, in condense.Input) (window, output int) {
	name := cmp.Or(llm.Model, in.Model)
	info, _ := b.config.ModelFor(name)
	window = info.ContextWindow
	if name == in.Model && in.Window > 0 {
		window = min(window, in.Window)
	}
	return window, cmp.Or(llm.MaxOutput, min(condense.DefaultMaxOutput, info.MaxOutput, window/4))
}
