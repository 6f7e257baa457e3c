package condensetest

import (
	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
)

// Every returns one condenser of each type in the catalogue, in its order, but for pipelines. Their limits are drawn so low that generated
// histories exceed them. Those that call a model or a service call asked.
func Every(t *rapid.T, asked condense.Summariser) []condense.Condenser {
	all := catalogue.Settings{Type: catalogue.TypePipeline}
	trigger := rapid.SampledFrom([]string{catalogue.TriggerLimits, catalogue.TriggerEconomics}).Draw(t, "trigger") // decides whether stages are batched
	for _, e := range catalogue.Entries() {
		if !e.Wraps() {
			all.Condensers = append(all.Condensers, draw(t, e, trigger))
		}
	}
	built, err := catalogue.Build("condenser", all, Dependencies{asked})
	if err != nil {
		t.Fatal(err)
	}
	return built.(condense.Pipeline).Stages
}

// Dependencies builds condensers for tests. They have no prices, and call Asked as the model "small-model".
type Dependencies struct{ Asked condense.Summariser }

// Rolling implements catalogue.Dependencies.
func (Dependencies) Rolling(s catalogue.Settings, _ condense.Input) condense.Settings {
	return s.Rolling()
}

// Asking implements catalogue.Dependencies.
func (d Dependencies) Asking(_ string, s catalogue.Settings) (func(condense.Input) condense.LLMSettings, error) {
	return func(condense.Input) condense.LLMSettings {
		return condense.LLMSettings{Settings: s.Rolling(), Model: "small-model", Summariser: d.Asked, MaxEventLength: s.MaxEventLength}
	}, nil
}

// draw draws the settings of a type. A number without a range of its own is drawn from small valid ones, and what is no number is its default.
func draw(t *rapid.T, e catalogue.Entry, trigger string) catalogue.Settings {
	s := e.Settings()
	for _, k := range catalogue.Keys() {
		if !e.Has(k.Name) {
			continue
		}
		name := e.Type + " " + k.Name
		switch k.Name {
		case "trigger":
			s.Trigger = trigger
		case "max_tokens":
			s.MaxTokens = rapid.SampledFrom([]float64{0, 700, 3000}).Draw(t, name)
		case "min_tokens":
			s.MinTokens = 0
		case "minimum_progress":
			s.MinimumProgress = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, name)
		case "max_event_length":
			s.MaxEventLength = rapid.SampledFrom([]int{100, 500, 2000}).Draw(t, name)
		case "max_size", "max_events":
			s.Set(k.Name, rapid.IntRange(4, 30).Draw(t, name))
		case "keep_first":
			s.KeepFirst = rapid.IntRange(0, 4).Draw(t, name)
		default:
			if value, ok := e.Default(k).(int); ok {
				s.Set(k.Name, rapid.SampledFrom(small(k, s, value)).Draw(t, name))
			}
		}
	}
	return s
}

// small lists the valid values of a key from 0 to 20, or up to three times its default if that is less.
func small(k catalogue.Key, s catalogue.Settings, byDefault int) (values []int) {
	for n := range min(20, 3*byDefault) + 1 {
		s.Set(k.Name, n)
		if k.Check(s) == "" {
			values = append(values, n)
		}
	}
	return values
}

// Sized returns settings of each type in the catalogue, in its order, but for noop, pipelines, and types that need a service. values are those of
// keys, where a type has them; a count is at most the type's default. A count that values lacks is a sixteenth of its default, and all else is
// zero.
func Sized(values map[string]any) (all []catalogue.Settings) {
	for _, e := range catalogue.Entries() {
		if e.Type == catalogue.TypeNoop || e.Wraps() || e.Has("url") {
			continue
		}
		s := catalogue.Settings{Type: e.Type}
		for _, k := range catalogue.Keys() {
			value, given := values[k.Name]
			most, counts := e.Default(k).(int)
			switch {
			case !e.Has(k.Name), !given && !counts, !given && k.Name == "min_tokens":
			case !given:
				s.Set(k.Name, max(1, most/16))
			case counts:
				s.Set(k.Name, min(value.(int), most))
			default:
				s.Set(k.Name, value)
			}
		}
		all = append(all, s)
	}
	return all
}
