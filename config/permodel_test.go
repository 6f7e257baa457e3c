package config

import (
	"reflect"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
)

// Every field of an Override replaces the condenser's own, and nothing else changes.
func TestWith(t *testing.T) {
	fields := reflect.TypeFor[Override]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		var o Override
		value := reflect.New(field.Type.Elem())
		value.Elem().Set(reflect.ValueOf(7).Convert(field.Type.Elem()))
		reflect.ValueOf(&o).Elem().Field(i).Set(value)

		base := catalogue.Default(catalogue.TypeLLM)
		base.LLMConfig, base.PerModel = "cheap", map[string]Override{"a": o}
		got, want := base.With(o), base
		want.PerModel = nil
		reflect.ValueOf(&want).Elem().FieldByName(field.Name).Set(value.Elem())
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", field.Name, got, want)
		}
		if base.PerModel == nil {
			t.Errorf("%s: the condenser itself changed", field.Name)
		}
	}
}

// An Override built in Go is also limited to the thresholds of the type.
func TestForeignThresholds(t *testing.T) {
	cfg := Default()
	cfg.Condenser = catalogue.Default(catalogue.TypeBrowserOutput)
	cfg.Condenser.PerModel = map[string]Override{"o3": {Stride: new(5), AttentionWindow: new(0)}}
	wantProblems(t, cfg.Validate(),
		`condenser.per_model.o3.stride: does not belong to type "browser_output": remove it, or use attention_window`,
		"condenser.per_model.o3.attention_window: is not positive: write a number of at least 1")
}
