package schema

import (
	"reflect"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// condenser describes a condenser, whose keys depend on its type. Where no type must be given, llm is meant.
func (w walker) condenser(typed bool) schema {
	c := w.object(reflect.TypeFor[config.Condenser](), "condensers[]")
	properties := c["properties"].(schema)
	properties["type"] = schema{"enum": types()}
	var cases []schema
	for _, canonical := range config.CondenserTypes() {
		spelled := slices.DeleteFunc(types(), func(name string) bool { return canon(name) != canonical })
		cases = append(cases, schema{
			"if":   schema{"required": []string{"type"}, "properties": schema{"type": schema{"enum": spelled}}},
			"then": keysOf(canonical),
		})
	}
	if typed {
		c["required"] = []string{"type"}
	} else {
		cases = append(cases, schema{"if": schema{"not": schema{"required": []string{"type"}}}, "then": keysOf(config.TypeLLM)})
	}
	c["allOf"] = cases
	return c
}

// keysOf allows the keys of one type, and its thresholds per model.
func keysOf(canonical string) schema {
	mine := append([]string{"type"}, config.CondenserKeys(canonical)...)
	allowed := schema{"propertyNames": schema{"enum": mine}}
	if slices.Contains(mine, "per_model") {
		var thresholds []string
		for _, key := range keys(reflect.TypeFor[config.Override]()) {
			if slices.Contains(mine, key.name) {
				thresholds = append(thresholds, key.name)
			}
		}
		entry := schema{"minProperties": 1, "propertyNames": schema{"enum": thresholds}}
		allowed["properties"] = schema{"per_model": schema{"additionalProperties": entry}}
	}
	return allowed
}

// types lists the condenser types by all their names.
func types() []string {
	return append(config.CondenserTypes(), aliases()...)
}

func aliases() []string {
	return []string{"browser_output_masking", "recent", "amortized", "llm_summarizing", "structured"}
}

func canon(name string) string {
	canonical, _ := config.CanonicalType(name)
	return canonical
}
