package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// maxPipelineDepth bounds how deep pipelines are nested.
const maxPipelineDepth = 16

func (v *validator) condenser(key string, c Condenser, depth int) {
	if !v.condenserType(key+".type", c.Type) {
		return
	}
	v.foreign(key, c.Type, setKeys(c), c.Entry().Keys)
	before := len(v.list)
	v.values(key, c)
	v.perModel(key, c, v.list[before:])
	if c.Entry().Wraps() {
		v.pipeline(key, c, depth)
	}
}

// values checks the values of the keys that belong to the condenser's type, and how they go together.
func (v *validator) values(key string, c Condenser) {
	e := c.Entry()
	for _, k := range catalogue.Keys() {
		if !e.Has(k.Name) {
			continue
		}
		path := key + "." + k.Name
		message := k.Check(c)
		v.when(message != "", path, "%s", message)
		switch k.Name { // what else the value depends on
		case "llm_config":
			v.llmConfig(path, c.LLMConfig)
		case "api_key":
			v.headerValue(path, Secret(c.Key()))
		case "url":
			v.when(c.URL == "", path, "is missing: write the address of the service, such as http://127.0.0.1:9000/condense")
			v.url(path, c.URL, "http://127.0.0.1:9000/condense", "set api_key")
		}
	}
}

// condenserType reports whether name is a canonical type, and adds a problem if it is not.
func (v *validator) condenserType(key, name string) bool {
	e, known := catalogue.Find(name)
	switch {
	case name == "":
		v.add(key, "is missing: use one of %s", strings.Join(catalogue.Types(), ", "))
	case !known && MeantType(name) != "":
		v.add(key, "%q is not a condenser type: did you mean %s?", name, MeantType(name))
	case !known:
		v.add(key, "%q is not a condenser type: use one of %s", name, strings.Join(catalogue.Types(), ", "))
	case e.Type != name:
		v.add(key, "%q is an alias of %q: use that", name, e.Type)
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

// llmConfig checks that a name is empty or an entry of llms.
func (v *validator) llmConfig(key, name string) {
	advice := "add it to llms"
	if len(v.config.LLMs) > 0 {
		advice = "use one of " + strings.Join(slices.Sorted(maps.Keys(v.config.LLMs)), ", ")
	}
	_, known := v.config.LLMs[name]
	v.when(!known && name != "", key, "is not an entry of llms: %s, or leave it empty for the request's own model", advice)
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

// perModel checks the condenser with each override applied. own are the problems of the condenser itself, which are not repeated for an override
// that inherits them.
func (v *validator) perModel(key string, c Condenser, own Problems) {
	own = slices.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(c.PerModel)) {
		override, path := c.PerModel[name], syntax.Join(key+".per_model", name)
		v.modelPattern(path, name)
		set := setKeys(override)
		v.foreign(path, c.Type, set, c.Entry().Thresholds())
		before := len(v.list)
		v.values(path, c.With(override))
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
