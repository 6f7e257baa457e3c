package catalogue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Dependencies gives condensers what their settings do not say: windows, prices, models and services. The key of a condenser in the
// configuration is for errors.
type Dependencies interface {
	// Rolling returns what a rolling condenser that calls nothing has for a request.
	Rolling(s Settings, in condense.Input) condense.Settings
	// Asking returns the same of a condenser that calls a model or a service, as a function, which is called for each request.
	Asking(key string, s Settings) (func(condense.Input) condense.LLMSettings, error)
}

// Build builds a condenser with all that it contains. key is its key in the configuration. The errors of all stages are joined.
func Build(key string, s Settings, d Dependencies) (condense.Condenser, error) {
	return builder{dependencies: d}.condenser(key, s)
}

type builder struct {
	dependencies Dependencies
	batched      bool // stages that change old results do so only together with a condensation
}

// parts is what a condenser is built of, apart from its settings.
type parts struct {
	name    string
	batched bool                                      // it changes old results only together with a condensation
	rolling func(condense.Input) condense.Settings    // of a type that calls nothing
	asking  func(condense.Input) condense.LLMSettings // of a type that calls a model or a service; nil for others
	stages  []condense.Condenser                      // of a type that wraps others
}

// each returns a condenser that is built for each request, because its settings depend on the request's model, whose window upstream may have
// corrected. Building one is cheap.
func (p parts) each(build func(condense.Input) condense.Condenser) condense.Condenser {
	return perRequest{p.name, build}
}

type perRequest struct {
	name  string
	build func(in condense.Input) condense.Condenser
}

func (p perRequest) Name() string { return p.name }

func (p perRequest) Condense(in condense.Input) condense.Decision { return p.build(in).Condense(in) }

// condenser builds a condenser with its per_model overrides.
func (b builder) condenser(key string, s Settings) (condense.Condenser, error) {
	if kept := s.Keep; kept != nil {
		if wrong := kept.check(); wrong != "" {
			return nil, fmt.Errorf("%s.keep %s", key, wrong)
		}
		s.Keep = nil
		inner, err := b.condenser(key, s)
		return condense.Keeping{Condenser: inner, Keep: kept.build()}, err
	}
	base, err := b.withoutOverrides(key, s)
	if err != nil || len(s.PerModel) == 0 {
		return base, err
	}
	overrides := map[string]condense.Condenser{}
	for name, override := range s.PerModel {
		if overrides[name], err = b.withoutOverrides(key, s.With(override)); err != nil {
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

func (b builder) withoutOverrides(key string, s Settings) (condense.Condenser, error) {
	e, known := Find(s.Type)
	if !known || e.Type != s.Type {
		return nil, fmt.Errorf("%s.type: %q is not a condenser type", key, s.Type)
	}
	p := parts{name: e.Type, batched: b.batched, rolling: func(in condense.Input) condense.Settings { return b.dependencies.Rolling(s, in) }}
	var err error
	if e.Asks() {
		p.asking, err = b.dependencies.Asking(key, s)
	}
	if e.Wraps() {
		p.stages, err = b.stages(key, s)
	}
	if err != nil {
		return nil, err
	}
	return e.build(s, p), nil
}

// stages builds the stages of a pipeline.
func (b builder) stages(key string, s Settings) (stages []condense.Condenser, all error) {
	b.batched = b.batched || s.Uses(Settings.ByPrice) // any other change makes the provider cache everything after it again
	for i, stage := range s.Condensers {
		built, err := b.condenser(fmt.Sprintf("%s.condensers[%d]", key, i), stage)
		all = errors.Join(all, err)
		stages = append(stages, built)
	}
	return stages, all
}
