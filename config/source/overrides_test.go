package source

import (
	"reflect"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
)

func TestPerModel(t *testing.T) {
	cfg := mustLoad(t, Input{File: "testdata/good.per-model.yaml", Env: fixtureEnv()})
	want := map[string]config.Override{
		"gpt-4.1": {MaxSize: new(400), MaxTokens: new(300000.0)},
		"gpt-4o*": {
			MaxTokens: new(0.5), MinimumProgress: new(0.2), MaxEventLength: new(4000),
		},
		"openrouter/*": {KeepFirst: new(0)},
	}
	if !reflect.DeepEqual(cfg.Condenser.PerModel, want) {
		t.Errorf("got\n%s", effective(t, cfg))
	}
	stages := cfg.Tenants[0].Condenser.Condensers
	for i, want := range []struct {
		stage config.Condenser
		o     config.Override
	}{
		{stages[0], config.Override{AttentionWindow: new(5), Stride: new(1)}},
		{stages[1], config.Override{AttentionWindow: new(5)}},
		{stages[2].Condensers[0], config.Override{MaxEvents: new(50), KeepFirst: new(1)}},
		{stages[2].Condensers[1], config.Override{MaxEventLength: new(500)}},
	} {
		if got := want.stage.PerModel; !reflect.DeepEqual(got, map[string]config.Override{"o3": want.o}) {
			t.Errorf("%d: the overrides of %s are %+v", i, want.stage.Type, got)
		}
	}
	if !cfg.Tenants[0].Notify || cfg.Notify {
		t.Errorf("notify is %v of the tenant, %v at the top", cfg.Tenants[0].Notify, cfg.Notify)
	}
}

func TestPerModelTOML(t *testing.T) {
	cfg := mustLoad(t, Input{File: "testdata/good.per-model.toml"})
	want := map[string]config.Override{"gpt-4o*": {MaxSize: new(60), KeepFirst: new(0)}}
	if got := cfg.Condenser.Condensers[1]; got.Type != catalogue.TypeAmortizedForgetting || !reflect.DeepEqual(got.PerModel, want) {
		t.Errorf("got %+v", got)
	}
	if got := cfg.Condenser.Condensers[0].PerModel; got != nil || !cfg.Notify {
		t.Errorf("overrides %+v, notify %v", got, cfg.Notify)
	}
}

// A variable changes an entry of the file, or makes one if only one name can be meant.
func TestPerModelVariables(t *testing.T) {
	text := `
condenser: {type: llm, per_model: {gpt-4o: {max_size: 50}, "gpt-4o*": {max_size: 60}, gpt-4.1: {max_size: 70}}}
tenants: [{name: a, api_keys: [{env: KEY}], condenser: {type: pipeline, condensers: [{type: recent}]}}]
`
	cfg := mustBuild(t, ".yaml", text, "KEY=k",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_MAX_SIZE=51", "DEWPOINT_CONDENSER_PER_MODEL_GPT_4O__KEEP_FIRST=5",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4_1_MAX_TOKENS=0.5", "DEWPOINT_CONDENSER_PER_MODEL_O3_MAX_SIZE=80",
		"DEWPOINT_TENANTS_0_CONDENSER_CONDENSERS_0_PER_MODEL_O3_MAX_EVENTS=90", "DEWPOINT_TENANTS_0_NOTIFY=true")
	want := map[string]config.Override{
		"gpt-4o": {MaxSize: new(51)}, "gpt-4o*": {MaxSize: new(60), KeepFirst: new(5)},
		"gpt-4.1": {MaxSize: new(70), MaxTokens: new(0.5)}, "o3": {MaxSize: new(80)},
	}
	if !reflect.DeepEqual(cfg.Condenser.PerModel, want) {
		t.Errorf("got\n%s", effective(t, cfg))
	}
	stage := cfg.Tenants[0].Condenser.Condensers[0]
	if !reflect.DeepEqual(stage.PerModel, map[string]config.Override{"o3": {MaxEvents: new(90)}}) || !cfg.Tenants[0].Notify {
		t.Errorf("got\n%s", effective(t, cfg))
	}

	_, err := buildText(".yaml", text, "KEY=k", "DEWPOINT_CONDENSER_PER_MODEL_GPT_5_MAX_SIZE=50",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_LLM_CONFIG=x", "DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_MAX_SIZE=3",
		"DEWPOINT_TENANTS_0_CONDENSER_PER_MODEL_O3_MAX_SIZE=3")
	wantProblems(t, err,
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_4O_LLM_CONFIG: names no configuration key: correct its name, or remove it",
		"DEWPOINT_CONDENSER_PER_MODEL_GPT_5_MAX_SIZE: names no configuration key: correct its name, or remove it",
		`tenants[0].condenser.per_model: does not belong to type "pipeline": remove it, or use condensers, keep, agent_request, condense_command, recall (DEWPOINT_TENANTS_0_CONDENSER_PER_MODEL_O3_MAX_SIZE)`,
		"condenser.per_model.gpt-4o.keep_first: is 2, and must be below max_size/2 = 1: lower it, or raise max_size (line 2)")
}
