package config

import (
	"reflect"
	"testing"
)

func override[T any](v T) *T { return &v }

func TestPerModel(t *testing.T) {
	cfg := mustLoad(t, Sources{File: "testdata/good.per-model.yaml", Env: fixtureEnv()})
	want := map[string]Override{
		"gpt-4.1": {MaxSize: override(400), MaxTokens: override(300000.0)},
		"gpt-4o*": {
			MaxTokens: override(0.5), MinimumProgress: override(0.2), MaxEventLength: override(4000),
		},
		"openrouter/*": {KeepFirst: override(0)},
	}
	if !reflect.DeepEqual(cfg.Condenser.PerModel, want) {
		t.Errorf("got\n%s", cfg.Effective())
	}
	stages := cfg.Tenants[0].Condenser.Condensers
	for i, want := range []struct {
		stage Condenser
		o     Override
	}{
		{stages[0], Override{AttentionWindow: override(5), Stride: override(1)}},
		{stages[1], Override{AttentionWindow: override(5)}},
		{stages[2].Condensers[0], Override{MaxEvents: override(50), KeepFirst: override(1)}},
		{stages[2].Condensers[1], Override{MaxEventLength: override(500)}},
	} {
		if got := want.stage.PerModel; !reflect.DeepEqual(got, map[string]Override{"o3": want.o}) {
			t.Errorf("%d: the overrides of %s are %+v", i, want.stage.Type, got)
		}
	}
	if !cfg.Tenants[0].Notify || cfg.Notify {
		t.Errorf("notify is %v of the tenant, %v at the top", cfg.Tenants[0].Notify, cfg.Notify)
	}
}

func TestPerModelTOML(t *testing.T) {
	cfg := mustLoad(t, Sources{File: "testdata/good.per-model.toml"})
	want := map[string]Override{"gpt-4o*": {MaxSize: override(60), KeepFirst: override(0)}}
	if got := cfg.Condenser.Condensers[1]; got.Type != TypeAmortizedForgetting || !reflect.DeepEqual(got.PerModel, want) {
		t.Errorf("got %+v", got)
	}
	if got := cfg.Condenser.Condensers[0].PerModel; got != nil || !cfg.Notify {
		t.Errorf("overrides %+v, notify %v", got, cfg.Notify)
	}
}

// Every field of an Override takes the place of the condenser's own, and nothing else does.
func TestWith(t *testing.T) {
	fields := reflect.TypeFor[Override]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		var o Override
		value := reflect.New(field.Type.Elem())
		value.Elem().Set(reflect.ValueOf(7).Convert(field.Type.Elem()))
		reflect.ValueOf(&o).Elem().Field(i).Set(value)

		base := NewCondenser(TypeLLM)
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

// An Override that was built in Go is held to the thresholds of the type too.
func TestForeignThresholds(t *testing.T) {
	cfg := Default()
	cfg.Condenser = NewCondenser(TypeBrowserOutput)
	cfg.Condenser.PerModel = map[string]Override{"o3": {Stride: override(5), AttentionWindow: override(0)}}
	wantProblems(t, cfg.Validate(nil),
		`condenser.per_model.o3.stride: does not belong to type "browser_output": remove it, or use attention_window`,
		"condenser.per_model.o3.attention_window: is not positive: write a number of at least 1")
}

// A variable changes the entry that the file has, and makes one where only one name can be meant.
func TestPerModelVariables(t *testing.T) {
	text := `
condenser: {type: llm, per_model: {gpt-4o: {max_size: 50}, "gpt-4o*": {max_size: 60}, gpt-4.1: {max_size: 70}}}
tenants: [{name: a, api_keys: [{env: KEY}], condenser: {type: pipeline, condensers: [{type: recent}]}}]
`
	cfg := mustBuild(t, ".yaml", text, "KEY=k",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_MAX_SIZE=51", "DEWPOINT_CONDENSER_PER_MODEL_GPT_4O__KEEP_FIRST=5",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4_1_MAX_TOKENS=0.5", "DEWPOINT_CONDENSER_PER_MODEL_O3_MAX_SIZE=80",
		"DEWPOINT_TENANTS_0_CONDENSER_CONDENSERS_0_PER_MODEL_O3_MAX_EVENTS=90", "DEWPOINT_TENANTS_0_NOTIFY=true")
	want := map[string]Override{
		"gpt-4o": {MaxSize: override(51)}, "gpt-4o*": {MaxSize: override(60), KeepFirst: override(5)},
		"gpt-4.1": {MaxSize: override(70), MaxTokens: override(0.5)}, "o3": {MaxSize: override(80)},
	}
	if !reflect.DeepEqual(cfg.Condenser.PerModel, want) {
		t.Errorf("got\n%s", cfg.Effective())
	}
	stage := cfg.Tenants[0].Condenser.Condensers[0]
	if !reflect.DeepEqual(stage.PerModel, map[string]Override{"o3": {MaxEvents: override(90)}}) || !cfg.Tenants[0].Notify {
		t.Errorf("got\n%s", cfg.Effective())
	}

	_, err := buildText(".yaml", text, "KEY=k", "DEWPOINT_CONDENSER_PER_MODEL_GPT_5_MAX_SIZE=50",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_LLM_CONFIG=x", "DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_MAX_SIZE=3",
		"DEWPOINT_TENANTS_0_CONDENSER_PER_MODEL_O3_MAX_SIZE=3")
	wantProblems(t, err,
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_LLM_CONFIG: names no configuration key: correct its name, or remove it",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_5_MAX_SIZE: names no configuration key: correct its name, or remove it",
		`tenants[0].condenser.per_model: does not belong to type "pipeline": remove it, or use condensers (DEWPOINT_TENANTS_0_CONDENSER_PER_MODEL_O3_MAX_SIZE)`,
		"condenser.per_model.gpt-4o.keep_first: is 2, and must be below max_size/2 = 1: lower it, or raise max_size (line 2)")
}
