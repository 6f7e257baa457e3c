package schema

import (
	"reflect"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
)

// condenser describes a condenser, whose keys depend on its type. Where no type must be given, llm is meant.
func (w walker) condenser(typed bool) schema {
	c := w.object(reflect.TypeFor[config.Condenser](), "condensers[]")
	properties := c["properties"].(schema)
	properties["type"] = schema{"enum": types()}
	var cases []schema
	for _, canonical := range catalogue.Types() {
		spelled := slices.DeleteFunc(types(), func(name string) bool { return canon(name) != canonical })
		cases = append(cases, schema{
			"if":   schema{"required": []string{"type"}, "properties": schema{"type": schema{"enum": spelled}}},
			"then": keysOf(canonical),
		})
	}
	if typed {
		c["required"] = []string{"type"}
	} else {
		cases = append(cases, schema{"if": schema{"not": schema{"required": []string{"type"}}}, "then": keysOf(catalogue.TypeLLM)})
	}
	c["allOf"] = cases
	return c
}

// keysOf allows the keys of one type, and its thresholds per model.
func keysOf(canonical string) schema {
	e, _ := catalogue.Find(canonical)
	allowed := schema{"propertyNames": schema{"enum": append([]string{"type"}, e.Keys...)}}
	if e.Has("per_model") {
		var thresholds []string
		for _, key := range keys(reflect.TypeFor[config.Override]()) {
			if e.Has(key.name) {
				thresholds = append(thresholds, key.name)
			}
		}
		entry := schema{"minProperties": 1, "propertyNames": schema{"enum": thresholds}}
		allowed["properties"] = schema{"per_model": schema{"additionalProperties": entry}}
	}
	return allowed
}

// types lists the condenser types by all their names.
func types() []string { return append(catalogue.Types(), catalogue.Aliases()...) }

func canon(name string) string {
	e, _ := catalogue.Find(name)
	return e.Type
}
