package schema

import (
	"os"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// The schema is written by hand nowhere: a key that the configuration gains is missing until it is written again.
func TestTheChartHasTheSchemaOfThisConfiguration(t *testing.T) {
	want, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../helm/values.schema.json")
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
