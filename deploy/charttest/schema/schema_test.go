package schema

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

var update = flag.Bool("update", false, "write the schema")

// The schema is written by hand nowhere: a key that the configuration gains is missing until it is written again.
func TestTheChartHasTheSchemaOfThisConfiguration(t *testing.T) {
	const file = "../../helm/values.schema.json"
	want, err := Document()
	if err != nil {
		t.Fatal(err)
	}
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

func TestAliasesAreTypes(t *testing.T) {
	for _, alias := range aliases() {
		if canonical, known := config.CanonicalType(alias); !known || canonical == alias {
			t.Errorf("%s is no other name of a condenser type", alias)
		}
	}
}

// Every section is closed, but for those that hand on a type of Kubernetes, and a map is of one kind of value.
func TestTheSchemaIsClosed(t *testing.T) {
	text, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
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
