package schema

import (
	_ "embed"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the schema")

//go:embed values.yaml
var values []byte

// document returns the whole schema as JSON.
func document(t *testing.T) []byte {
	t.Helper()
	var root schema
	if err := yaml.UnmarshalStrict(values, &root); err != nil {
		t.Fatalf("read values.yaml: %v", err)
	}
	definitions := root["definitions"].(schema)
	w := walker{known: known(), used: map[string]bool{}}
	for name, definition := range w.configuration() {
		if _, taken := definitions[name]; taken {
			t.Fatalf("definition %s stands in values.yaml and is made of the configuration too", name)
		}
		definitions[name] = definition
	}
	for path := range w.known {
		if !w.used[path] {
			t.Fatalf("known() constrains %s, which the configuration does not have", path)
		}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatalf("write schema: %v", err)
	}
	return append(text, '\n')
}

// The schema is written by hand nowhere: a key that the configuration gains is missing until it is written again.
func TestTheChartHasTheSchemaOfThisConfiguration(t *testing.T) {
	const file = "../../helm/values.schema.json"
	want := document(t)
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("deploy/helm/values.schema.json is not that of the configuration: run 'make chart-schema'")
	}
}

// Every section is closed, but for those that hand on a type of Kubernetes, and a map is of one kind of value.
func TestTheSchemaIsClosed(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(document(t), &root); err != nil {
		t.Fatal(err)
	}
	var open []string
	var look func(path string, value any)
	look = func(path string, value any) {
		section, ok := value.(map[string]any)
		if !ok {
			return
		}
		if section["type"] == "object" && section["additionalProperties"] == nil && section["propertyNames"] == nil {
			open = append(open, path)
		}
		for key, below := range section {
			look(path+"/"+key, below)
		}
	}
	look("", root)
	slices.Sort(open)
	want := []string{"/definitions/list/items", "/definitions/object", "/properties/extraEnv/items", "/properties/global"}
	if !slices.Equal(open, want) {
		t.Errorf("open sections are %v, and may be %v", open, want)
	}
}
