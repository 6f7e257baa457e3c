package catalogue

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// TestKeysAndFieldsAgree checks that each field of Settings has a key and each key a field, and that thresholds per model are fields of both.
func TestKeysAndFieldsAgree(t *testing.T) {
	var names, fields []string
	for _, k := range Keys() {
		names = append(names, k.Name)
		if k.Doc == "" || strings.Contains(k.Doc, "|") {
			t.Errorf("%s has no description that fits a table: %q", k.Name, k.Doc)
		}
	}
	types := map[string]reflect.Type{}
	for f := range reflect.TypeFor[Settings]().Fields() {
		if key := keyOf(f); key != "type" {
			fields, types[key] = append(fields, key), f.Type
		}
	}
	slices.Sort(names)
	slices.Sort(fields)
	if !slices.Equal(names, fields) {
		t.Errorf("the keys are %v, the fields %v", names, fields)
	}
	for f := range reflect.TypeFor[Override]().Fields() {
		if own := types[keyOf(f)]; own == nil || f.Type != reflect.PointerTo(own) {
			t.Errorf("%s is a %s in an override, and a %v in the settings", keyOf(f), f.Type, own)
		}
	}
}

func TestEntriesAreComplete(t *testing.T) {
	used, names := map[string]bool{}, map[string]bool{"": true}
	for _, e := range Entries() {
		if names[e.Type] || e.Alias != "" && names[e.Alias] {
			t.Errorf("%s or %s names another type, too", e.Type, e.Alias)
		}
		names[e.Type], names[e.Alias] = true, true
		if e.Doc == "" || strings.Contains(e.Doc, "|") {
			t.Errorf("%s has no description that fits a table: %q", e.Type, e.Doc)
		}
		for _, key := range e.Keys {
			used[key] = true
			if !slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == key }) {
				t.Errorf("%s has the key %s, which is not one of Keys", e.Type, key)
			}
		}
		for key := range e.Defaults {
			if !e.Has(key) {
				t.Errorf("%s has a default for %s, which is not one of its keys", e.Type, key)
			}
		}
		for _, k := range Keys() {
			if message := k.Check(e.Settings()); e.Has(k.Name) && message != "" {
				t.Errorf("%s: the default of %s %s", e.Type, k.Name, message)
			}
		}
		if e.Has("per_model") != (len(e.Thresholds()) > 0) {
			t.Errorf("%s: per_model %t, thresholds %v", e.Type, e.Has("per_model"), e.Thresholds())
		}
	}
	for _, k := range Keys() {
		if !used[k.Name] {
			t.Errorf("no type has the key %s", k.Name)
		}
	}
}

// TestDefaultsAreThoseOfTheType: a type has the defaults of its own keys only, and its own where it has one.
func TestDefaultsAreThoseOfTheType(t *testing.T) {
	for _, want := range []Settings{
		{Type: TypeNoop}, {Type: TypeBrowserOutput, AttentionWindow: 1}, {Type: TypeObservationMasking, AttentionWindow: 100, Stride: 10},
		{Type: TypeRecentEvents, KeepFirst: 2, MaxEvents: 100}, {Type: "unknown"},
	} {
		if got := Default(want.Type); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// unknown are dependencies that know no model.
type unknown struct{}

func (unknown) Rolling(s Settings, _ condense.Input) condense.Settings { return s.Rolling() }

func (unknown) Asking(key string, s Settings) (func(condense.Input) condense.LLMSettings, error) {
	if s.LLMConfig != "" {
		return nil, errors.New(key + " names no model")
	}
	return func(condense.Input) condense.LLMSettings { return condense.LLMSettings{Settings: s.Rolling()} }, nil
}

// TestBuiltCondensersHaveTheNamesOfTheirTypes also builds each with an override, and as a stage.
func TestBuiltCondensersHaveTheNamesOfTheirTypes(t *testing.T) {
	pipeline := Default(TypePipeline)
	for _, e := range Entries() {
		s := e.Settings()
		if e.Has("per_model") {
			s.PerModel = map[string]Override{"a": {}}
		}
		pipeline.Condensers = append(pipeline.Condensers, s)
		if c, err := Build("condenser", s, unknown{}); err != nil || c.Name() != e.Type {
			t.Errorf("%s: %v, %v", e.Type, c, err)
		}
	}
	c, err := Build("condenser", pipeline, unknown{})
	if err != nil {
		t.Fatal(err)
	}
	for i, stage := range c.(condense.Pipeline).Stages {
		if stage.Name() != Types()[i] {
			t.Errorf("stage %d is %s, want %s", i, stage.Name(), Types()[i])
		}
	}
}

// TestErrorsOfAllStagesAreReported: an unknown type and an alias cannot be built, and a stage that fails does not conceal another's error.
func TestErrorsOfAllStagesAreReported(t *testing.T) {
	s := Default(TypePipeline)
	s.Condensers = []Settings{{Type: "sliding"}, {Type: "recent"}, {Type: TypePipeline, Condensers: []Settings{{Type: TypeLLM, LLMConfig: "nobody"}}}}
	_, err := Build("condenser", s, unknown{})
	want := `condenser.condensers[0].type: "sliding" is not a condenser type
condenser.condensers[1].type: "recent" is not a condenser type
condenser.condensers[2].condensers[0] names no model`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestStagesAreBatchedWithAPrice: beside a stage that condenses by price, also in an inner pipeline, stages that change old results do so only
// together with a condensation.
func TestStagesAreBatchedWithAPrice(t *testing.T) {
	masking, rolling := Default(TypeObservationMasking), Default(TypeExcerpts)
	for _, trigger := range []string{TriggerLimits, TriggerEconomics} {
		rolling.Trigger = trigger
		inner := Settings{Type: TypePipeline, Condensers: []Settings{masking}}
		c, err := Build("condenser", Settings{Type: TypePipeline, Condensers: []Settings{inner, rolling}}, unknown{})
		if err != nil {
			t.Fatal(err)
		}
		stage := c.(condense.Pipeline).Stages[0].(condense.Pipeline).Stages[0]
		if got := stage.(condense.ObservationMasking).Batched; got != (trigger == TriggerEconomics) {
			t.Errorf("%s: batched %t", trigger, got)
		}
	}
}
