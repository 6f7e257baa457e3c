package config

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// maxPipelineDepth bounds how deep pipelines are nested.
const maxPipelineDepth = 16

func (v *validator) condenser(key string, c Condenser, depth int) {
	if !v.condenserType(key+".type", c.Type) {
		return
	}
	v.foreign(key, c.Type, setKeys(c), CondenserKeys(c.Type))
	before := len(v.list)
	v.sizes(key, c)
	v.perModel(key, c, v.list[before:])
	if c.Type == TypePipeline {
		v.pipeline(key, c, depth)
	}
}

// sizes checks the values of the keys that belong to the condenser's type, and how they go together.
func (v *validator) sizes(key string, c Condenser) {
	keys := CondenserKeys(c.Type)
	if slices.Contains(keys, "max_size") {
		v.rolling(key, c)
	}
	size := func(name string, n int) {
		if slices.Contains(keys, name) {
			v.positive(key+"."+name, n)
		}
	}
	size("attention_window", c.AttentionWindow)
	size("stride", c.Stride)
	size("max_event_length", c.MaxEventLength)
	if c.asks() {
		v.calling(key, c)
	}
	if c.Type == TypeRecentEvents && v.positive(key+".max_events", c.MaxEvents) {
		v.when(c.KeepFirst < 0, key+".keep_first", "is negative: write a number of events")
		v.when(c.KeepFirst >= c.MaxEvents,
			key+".keep_first", "is %d, and must be below max_events = %d: lower it, or raise max_events", c.KeepFirst, c.MaxEvents)
	}
}

// condenserType reports whether name is a canonical type, and adds a problem if it is not.
func (v *validator) condenserType(key, name string) bool {
	canonical, known := CanonicalType(name)
	switch {
	case name == "":
		v.add(key, "is missing: use one of %s", strings.Join(CondenserTypes(), ", "))
	case !known:
		v.add(key, "%q is not a condenser type: use one of %s", name, strings.Join(CondenserTypes(), ", "))
	case canonical != name:
		v.add(key, "%q is an alias of %q: use that", name, canonical)
	default:
		return true
	}
	return false
}

// foreign refuses keys that are set but do not belong to the type. The decoder refuses them in files; this is for a Config built in Go.
func (v *validator) foreign(key, condenserType string, set, own []string) {
	for _, name := range set {
		v.when(name != "type" && !slices.Contains(own, name), syntax.Join(key, name), "%s", ForeignKey(condenserType, own))
	}
}

// rolling checks a type that condenses down to half of max_size.
func (v *validator) rolling(key string, c Condenser) {
	v.when(c.Trigger != TriggerLimits && c.Trigger != TriggerEconomics,
		key+".trigger", "is unknown: write %s or %s", TriggerLimits, TriggerEconomics)
	if v.positive(key+".max_size", c.MaxSize) {
		v.keepFirst(key+".keep_first", c)
	}
	v.maxTokens(key+".max_tokens", c.MaxTokens)
	v.when(c.MinTokens < 0, key+".min_tokens", "is negative: write a number of tokens, or 0 for no floor")
	v.when(!(c.MinimumProgress > 0 && c.MinimumProgress < 1),
		key+".minimum_progress", "is not between 0 and 1: write a share of the events, such as 0.1")
}

// keepFirst checks that half of max_size, the target of a condensation, holds the first events, the summary and at least one later event.
func (v *validator) keepFirst(key string, c Condenser) {
	half, summary := c.MaxSize/2, 0
	if c.Type == TypeLLM || c.Type == TypeStructuredSummary || c.Type == TypeCustom { // hidden events are replaced by a summary
		summary = 1
	}
	switch {
	case c.KeepFirst < 0:
		v.add(key, "is negative: write a number of events")
	case c.KeepFirst >= half:
		v.add(key, "is %d, and must be below max_size/2 = %d: lower it, or raise max_size", c.KeepFirst, half)
	case half-c.KeepFirst-summary < 1:
		v.add(key, "is %d, which leaves no room for an event after the summary in max_size/2 = %d: lower it, or raise max_size", c.KeepFirst, half)
	}
}

func (v *validator) maxTokens(key string, tokens float64) {
	switch {
	case !(tokens > 0) || math.IsInf(tokens, 0):
		v.add(key, "is not positive: write a share of the window up to 1, or a number of tokens")
	case tokens > 1 && tokens != math.Trunc(tokens):
		v.add(key, "is neither a share nor a whole number: write a share of the window up to 1, or a number of tokens")
	}
}

func (v *validator) calling(key string, c Condenser) {
	if c.Type == TypeCustom {
		v.custom(key, c)
	} else {
		v.model(key, c)
	}
	v.notNegative(key+".timeout", c.Timeout)
	v.when(c.Wait != WaitDeadline && c.Wait != WaitNever, key+".wait", "is unknown: write %s or %s", WaitDeadline, WaitNever)
	v.when(c.Deadline <= 0, key+".deadline", "is not positive: write how long a request may wait for a summary, such as 20s")
	v.when(c.BackgroundAt != 0 && !(c.BackgroundAt >= 0.5 && c.BackgroundAt < 1),
		key+".background_at", "is neither 0 nor a share from 0.5 to below 1: write 0.8, or 0 to prepare no summaries")
}

// model checks the keys of a type that calls a model.
func (v *validator) model(key string, c Condenser) {
	v.when(slices.Contains(CondenserKeys(c.Type), "focus") && !slices.Contains(Focuses(), c.Focus),
		key+".focus", "is unknown: write one of %s", strings.Join(Focuses(), ", "))
	advice := "add it to llms"
	if len(v.config.LLMs) > 0 {
		advice = "use one of " + strings.Join(slices.Sorted(maps.Keys(v.config.LLMs)), ", ")
	}
	_, known := v.config.LLMs[c.LLMConfig]
	v.when(!known && c.LLMConfig != "",
		key+".llm_config", "is not an entry of llms: %s, or leave it empty for the request's own model", advice)
}

// custom checks the keys of a condenser that is a service of the operator's.
func (v *validator) custom(key string, c Condenser) {
	v.headerValue(key+".api_key", Secret(c.Key()))
	v.when(c.URL == "", key+".url", "is missing: write the address of the service, such as http://127.0.0.1:9000/condense")
	v.url(key+".url", c.URL, "http://127.0.0.1:9000/condense", "set api_key")
}

func (v *validator) pipeline(key string, c Condenser, depth int) {
	list := key + ".condensers"
	v.when(len(c.Condensers) == 0, list, "is empty: name at least one condenser")
	if depth >= maxPipelineDepth {
		v.add(list, "is nested too deeply: write the pipelines as one list")
		return
	}
	for i, stage := range c.Condensers {
		v.condenser(syntax.Index(list, i), stage, depth+1)
	}
}

func (v *validator) positive(key string, n int) bool {
	v.when(n <= 0, key, "is not positive: write a number of at least 1")
	return n > 0
}

// perModel checks the condenser with each override applied. own are the problems of the condenser itself, which are not repeated for an override
// that inherits them.
func (v *validator) perModel(key string, c Condenser, own Problems) {
	own = slices.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(c.PerModel)) {
		override, path := c.PerModel[name], syntax.Join(key+".per_model", name)
		v.modelPattern(path, name)
		set := setKeys(override)
		v.foreign(path, c.Type, set, Thresholds(c.Type))
		before := len(v.list)
		v.sizes(path, c.With(override))
		found := slices.DeleteFunc(v.list[before:], func(p Problem) bool {
			name := strings.TrimPrefix(p.Key, path+".")
			return !slices.Contains(set, name) && slices.ContainsFunc(own, func(first Problem) bool {
				return first.Key == syntax.Join(key, name) && first.Message == p.Message
			})
		})
		v.list = v.list[:before+len(found)]
	}
}

// modelPattern checks that a name is a model name, or a prefix and a *.
func (v *validator) modelPattern(key, name string) {
	switch {
	case name == "":
		v.add(key, "has an empty name: name the model")
	case name == "*":
		v.add(key, "matches every model: set the condenser's own keys")
	case strings.Contains(name[:len(name)-1], "*"):
		v.add(key, "has a * before its end: write the model, or a prefix of its name and one *")
	}
}
