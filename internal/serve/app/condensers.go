package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
)

// builder builds the condensers of a tenant.
type builder struct {
	config   *config.Config
	out      *calls
	tenant   string
	through  http.RoundTripper // sends its calls
	upstream config.Upstream
	base     string             // the upstream's URL as it appears in requests
	health   *summariser.Tenant // of the called models
	limits   limit.Tenant
	rides    *condense.Rides // shared by all stages
	batched  bool            // stages that change old results do so only together with a condensation
}

// condenser builds a condenser with its per_model overrides. key is its key in the configuration.
func (b builder) condenser(key string, c config.Condenser) (condense.Condenser, error) {
	base, err := b.withoutOverrides(key, c)
	if err != nil || len(c.PerModel) == 0 {
		return base, err
	}
	overrides := map[string]condense.Condenser{}
	for name, override := range c.PerModel {
		if overrides[name], err = b.withoutOverrides(key, c.With(override)); err != nil {
			return nil, err
		}
	}
	return perRequest{base.Name(), func(in condense.Input) condense.Condenser { return forModel(in.Model, overrides, base) }}, nil
}

// forModel returns the override with the model's exact name, or the one with its longest prefix (a name that ends in *), or
// base if there is neither.
func forModel(model string, overrides map[string]condense.Condenser, base condense.Condenser) condense.Condenser {
	if exact, ok := overrides[model]; ok {
		return exact
	}
	found, longest := base, 0
	for name, c := range overrides {
		if prefix, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(model, prefix) && len(name) > longest {
			found, longest = c, len(name)
		}
	}
	return found
}

func (b builder) withoutOverrides(key string, c config.Condenser) (condense.Condenser, error) {
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
		return perRequest{c.Type, func(in condense.Input) condense.Condenser {
			return condense.AmortizedForgetting{Settings: b.settings(c, in, nil)}
		}}, nil
	case config.TypeExcerpts:
		return perRequest{c.Type, func(in condense.Input) condense.Condenser {
			return condense.Excerpts{Settings: b.settings(c, in, nil)}
		}}, nil
	case config.TypeLLM, config.TypeStructuredSummary, config.TypeLLMAttention:
		return b.llm(key, c)
	case config.TypeCustom:
		return b.custom(c), nil
	case config.TypePipeline:
		return b.pipeline(key, c)
	}
	return nil, fmt.Errorf("%s.type: %q is not a condenser type", key, c.Type)
}

func (b builder) pipeline(key string, c config.Condenser) (condense.Condenser, error) {
	var p condense.Pipeline
	var all error
	b.batched = b.batched || c.Uses(byPrice) // any other change makes the provider cache everything after it again
	for i, stage := range c.Condensers {
		built, err := b.condenser(fmt.Sprintf("%s.condensers[%d]", key, i), stage)
		all = errors.Join(all, err)
		p.Stages = append(p.Stages, built)
	}
	return p, all
}

// byPrice reports whether a stage condenses when that pays off.
func byPrice(c config.Condenser) bool { return c.Trigger == config.TriggerEconomics }

// llm builds a condenser that calls a model.
func (b builder) llm(key string, c config.Condenser) (condense.Condenser, error) {
	llm, known := b.config.LLMFor(c.LLMConfig, b.upstream)
	if !known {
		return nil, fmt.Errorf("%s.llm_config: %q is not one of llms", key, c.LLMConfig)
	}
	to := endpoint(llm)
	if to.BaseURL == b.upstream.BaseURL {
		to.BaseURL = b.base // a client's key is only sent to the URL of its requests, so both must be spelled alike
	}
	caller := b.out.caller(b.through, cmp.Or(c.Timeout, llm.Timeout), llm.Temperature)
	common := condense.LLMSettings{
		Summariser: b.metered(observe.Summariser{Summariser: b.limited(caller, llm.APIKey, b.upstream.APIKey)}),
		Endpoint:   to, Model: llm.Model, Health: b.health, MaxEventLength: c.MaxEventLength,
	}
	samePayer := b.upstream.APIKey != "" || llm.APIKey == "" && llm.BaseURL == b.upstream.BaseURL // of summaries and requests
	if samePayer {
		common.Rides = b.rides
	}
	if c.Focus != config.FocusAuto {
		common.Focus = condense.Focus(c.Focus)
	}
	return perRequest{c.Type, func(in condense.Input) condense.Condenser {
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

// custom builds a condenser that calls a service.
func (b builder) custom(c config.Condenser) condense.Condenser {
	called := summariser.Service{Client: client(b.through), URL: c.URL, Key: c.Key(), Timeout: c.Timeout}
	common := condense.LLMSettings{
		Summariser: b.metered(observe.Summariser{Summariser: b.limited(called, config.Secret(c.Key())), NoModel: true}),
		Endpoint:   condense.Endpoint{BaseURL: c.URL, APIKey: c.Key()}, Health: b.health,
	}
	return perRequest{c.Type, func(in condense.Input) condense.Condenser {
		s := common
		s.Settings = b.settings(c, in, nil)
		return condense.NewCustom(s)
	}}
}

func endpoint(llm config.LLM) condense.Endpoint {
	return condense.Endpoint{BaseURL: llm.BaseURL, APIKey: llm.APIKey.Reveal(), Way: condense.Way{API: llm.API}}
}

// metered returns a summariser whose calls are measured, if the proxy has metrics.
func (b builder) metered(s observe.Summariser) condense.Summariser {
	if b.out.metrics == nil {
		return s.Summariser
	}
	s.Tenant, s.Metrics, s.Spans, s.Models = b.tenant, b.out.metrics, b.out.spans, models(b.config)
	return s
}

// perRequest is a condenser that is built for each request, because its settings depend on the request's model, whose window
// upstream may have corrected. Building one is cheap.
type perRequest struct {
	name  string
	build func(in condense.Input) condense.Condenser
}

func (p perRequest) Name() string { return p.name }

func (p perRequest) Condense(in condense.Input) condense.Decision { return p.build(in).Condense(in) }

// settings returns the settings of a rolling condenser for a request. A summariser without a model name is the request's
// own model.
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

// target is the size to which a condensation by price reduces a request, in tokens. A lower target is cheaper but loses more.
// See lab/economics.md.
const target = 24_000

// prices returns the prices of a request's model and a summariser's, or nil if either is not known.
func (b builder) prices(name, summariser string) *condense.Economics {
	info, _ := b.config.ModelFor(summariser)
	if name != summariser && !info.Price.Known() {
		return nil
	}
	return b.economics(name, &config.LLM{Model: summariser})
}

// economics returns the prices of a request's model and its summariser, or nil if the model's is not known. A summariser
// with an unknown price is assumed to cost as much as the model.
func (b builder) economics(name string, summariser *config.LLM) *condense.Economics {
	info, known := b.config.ModelFor(name)
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

// margin returns how many tokens of a model's window stay free, because counts are not exact: one fiftieth of the window, at
// least 256 tokens, but at most a quarter of the window.
func margin(window int) int { return min(max(window/50, 256), window/4) }

// room returns the window of a summariser's model and the maximum output of a summary, in tokens. If it is the request's own
// model, upstream may have corrected its window. Unless it is configured, the output is the default, bounded by the model's
// maximum output and by a quarter of its window.
func (b builder) room(llm config.LLM, in condense.Input) (window, output int) {
	name := cmp.Or(llm.Model, in.Model)
	info, _ := b.config.ModelFor(name)
	window = info.ContextWindow
	if name == in.Model && in.Window > 0 {
		window = min(window, in.Window)
	}
	return window, cmp.Or(llm.MaxOutput, min(condense.DefaultMaxOutput, info.MaxOutput, window/4))
}
