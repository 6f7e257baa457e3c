// Package schema makes the schema of the chart's values: of values.yaml here, which describes the chart's own values, and
// of Dewpoint's configuration, as its structs describe it.
package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed values.yaml
var values []byte

// Document is the whole schema, as JSON.
func Document() ([]byte, error) {
	var root schema
	if err := yaml.UnmarshalStrict(values, &root); err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	definitions := root["definitions"].(map[string]any)
	w := walker{known: known(), used: map[string]bool{}}
	for name, definition := range w.configuration() {
		if _, taken := definitions[name]; taken {
			return nil, fmt.Errorf("definition %s stands in values.yaml and is made of the configuration too", name)
		}
		definitions[name] = definition
	}
	for path := range w.known {
		if !w.used[path] {
			return nil, fmt.Errorf("known.go constrains %s, which the configuration does not have", path)
		}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(text, '\n'), nil
}
