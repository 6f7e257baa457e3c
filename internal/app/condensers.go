package app

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

// builder makes the condensers of one tenant.
type builder struct {
	config   *config.Config
	out      *calls
	tenant   string
	upstream config.Upstream
	base     string             // its URL as requests name it
	health   *summariser.Tenant // of the models; nil: all are well
	limits   limit.Tenant
	rides    *condense.Rides // of all stages
	batched  bool            // stages that change old results do so only when something is condensed
}

// condenser makes the condenser of a key of the configuration, with its per_model.
func (b builder) condenser(key string, c config.Condenser) (condense.Condenser, error) {
	fallback, err := b.plain(key, c)
	if err != nil || len(c.PerModel) == 0 {
		return fallback, err
	}
	p := perModel{fallback: fallback, exact: map[string]condense.Condenser{}}
	for name, override := range c.PerModel {
		own, err := b.plain(key, c.With(override))
		if err != nil {
			return nil, err
		}
		p.add(name, own)
	}
	return p, nil
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
	case config.TypeAmortizedForgetting, config.TypeExcerpts:
		return b.unaided(c), nil
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

// unaided makes a rolling condenser without a model.
func (b builder) unaided(c config.Condenser) condense.Condenser {
	return fitted{name: c.Type, fit: func(in condense.Input) condense.Condenser {
		if c.Type == config.TypeExcerpts {
			return condense.Excerpts{Settings: b.settings(c, in, nil)}
		}
		return condense.AmortizedForgetting{Settings: b.settings(c, in, nil)}
	}}
}

// calling makes a condenser that calls a model.
func (b builder) calling(key string, c config.Condenser) (condense.Condenser, error) {
	llm, known := b.config.LLMFor(c.LLMConfig, b.upstream)
	if !known {
		return nil, fmt.Errorf("%s.llm_config: %q is not one of llms", key, c.LLMConfig)
	}
	common := condense.LLMSettings{
		Summariser:     b.summariser(llm, c),
		Endpoint:       b.endpoint(llm),
		Model:          llm.Model,
		MaxEventLength: c.MaxEventLength,
	}
	if b.upstream.APIKey != "" || llm.APIKey == "" && llm.BaseURL == b.upstream.BaseURL { // who pays for summaries pays for the requests, too
		common.Rides = b.rides
	}
	if c.Focus != config.FocusAuto {
		common.Focus = condense.Focus(c.Focus)
	}
	if b.health != nil {
		common.Health = b.health
	}
	roomOf := b.room(llm)
	return fitted{name: c.Type, fit: func(in condense.Input) condense.Condenser {
		s, r := common, roomOf(in)
		s.Settings, s.Window, s.MaxOutput = b.settings(c, in, &llm), r.window, r.output
		return form(c.Type, s)
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
	within := spending{Summariser: asked, keys: []string{to.APIKey}, limits: b.limits, purse: b.out.purse(b.tenant, b.limits)}
	common := condense.LLMSettings{
		Summariser: b.out.noted(observe.Summariser{Summariser: within, Tenant: b.tenant, Models: models(b.config), NoModel: true}), Endpoint: to,
	}
	if b.health != nil {
		common.Health = b.health
	}
	return fitted{name: c.Type, fit: func(in condense.Input) condense.Condenser {
		s := common
		s.Settings = b.settings(c, in, nil)
		return condense.NewCustom(s)
	}}, nil
}

// endpoint is where a model is. The client's own key goes to where its requests go and nowhere else: that URL must be
// spelled as theirs is.
func (b builder) endpoint(llm config.LLM) condense.Endpoint {
	e := condense.Endpoint{BaseURL: llm.BaseURL, APIKey: llm.APIKey.Reveal(), Way: condense.Way{API: llm.API}}
	if e.BaseURL == b.upstream.BaseURL {
		e.BaseURL = b.base
	}
	return e
}

func (b builder) summariser(llm config.LLM, c config.Condenser) condense.Summariser {
	timeout := llm.Timeout
	if c.Timeout > 0 {
		timeout = c.Timeout
	}
	within := spending{
		Summariser: b.out.model(timeout, llm.Temperature), keys: operatorsKeys(llm, b.upstream), limits: b.limits, purse: b.out.purse(b.tenant, b.limits),
	}
	return b.out.noted(observe.Summariser{Summariser: within, Tenant: b.tenant, Models: models(b.config)})
}

// form gives the condenser that asks a model for what the type wants of it.
func form(kind string, s condense.LLMSettings) condense.Condenser {
	switch kind {
	case config.TypeStructuredSummary:
		return condense.NewStructured(s)
	case config.TypeLLMAttention:
		return condense.NewAttention(s)
	}
	return condense.NewLLM(s)
}

func narrow(v *float64) *float32 {
	if v == nil {
		return nil
	}
	n := float32(*v)
	return &n
}
