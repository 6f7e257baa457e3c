package engine

import (
	"encoding/json"
	"maps"
	"slices"
)

// argumentTexts gives the texts in a tool call's arguments, at any depth: among them is a sub-agent's task.
func argumentTexts(arguments string) []string {
	if len(arguments) > argumentsRead {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return nil
	}
	return collect(v, nil)
}

// argumentsRead bounds the arguments that are looked into, in bytes.
const argumentsRead = 64 << 10

func collect(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = collect(e, out)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = collect(v[key], out)
		}
	}
	return out
}
