package source

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// TestOpenHandsFileIsReadWhole: the sections of config.toml that do not concern condensers are named in one warning and left alone, and
// variables in them need not be set.
func TestOpenHandsFileIsReadWhole(t *testing.T) {
	cfg := mustBuild(t, ".toml", `
[core]
workspace_base = "${NOT_SET}/workspace"
jwt_secret = "very-secret"
[llm]
model = "gpt-4o"
api_key = "k"
embedding_model = "local"
[llm.cheap]
model = "gpt-4o-mini"
input_cost_per_token = 0.00000015
[agent]
enable_browsing = true
[agent.RepoExplorerAgent]
llm_config = "cheap"
[sandbox]
runtime_startup_env_vars = { A = "${NOT_SET_EITHER}" }
[security]
confirmation_mode = true
[kubernetes]
namespace = "default"
[condenser]
type = "structured"
llm_config = "cheap"
max_size = 80
`)
	if c := cfg.Condenser; c.Type != catalogue.TypeStructuredSummary || c.LLMConfig != "cheap" || c.MaxSize != 80 || c.Trigger != catalogue.TriggerLimits {
		t.Errorf("the condenser is %+v", c)
	}
	wantProblems(t, cfg.Warnings,
		"llm.cheap.input_cost_per_token: belongs to OpenHands and has no effect here: set models.gpt-4o-mini.price.input, in USD per million tokens (line 11)",
		"core, agent, sandbox, security, kubernetes, llm.embedding_model: belong to OpenHands and have no effect here: they may stay (line 2)")
	cfg = mustBuild(t, ".toml", "[sandbox]\n[condenser]\ntype = \"noop\"")
	wantProblems(t, cfg.Warnings, "sandbox: belongs to OpenHands and has no effect here: it may stay (line 1)")
}

// TestCondensersOfOpenHandsSDK: the form of its settings and of its serialised agents is read as if it was written here.
func TestCondensersOfOpenHandsSDK(t *testing.T) {
	f := func(text, want string, warnings ...string) {
		t.Helper()
		cfg, same := mustBuild(t, ".json", text), mustBuild(t, ".yaml", want)
		wantProblems(t, cfg.Warnings, warnings...)
		cfg.Warnings, same.Warnings = nil, nil
		if !reflect.DeepEqual(cfg, same) {
			t.Errorf("%s\nis read as\n%s", text, effective(t, cfg))
		}
	}
	f(`{"condenser": {"condenser_kind": "llm_summarizing", "enabled": true, "max_size": 80, "max_tokens": null, "keep_first": 4, "minimum_progress": 0.2,
		"hard_context_reset_max_retries": 5, "hard_context_reset_context_scaling": 0.8}}`,
		"condenser: {type: llm, trigger: limits, max_size: 80, keep_first: 4, minimum_progress: 0.2}",
		"condenser.hard_context_reset_context_scaling, condenser.hard_context_reset_max_retries: belong to OpenHands and have no effect here: they may stay (line 2)")
	f(`{"condenser_kind": "llm_summarizing", "max_tokens": 56000}`, "condenser: {type: llm, trigger: limits, max_tokens: 56000}")
	f(`{"condenser": {"enabled": true, "max_size": 100}}`, "condenser: {type: llm, trigger: limits, max_size: 100}")
	f(`{"condenser": {"condenser_kind": "llm_summarizing", "enabled": false, "max_size": 100}}`, "condenser: {type: noop}")
	f(`{"condenser": {"condenser_kind": "no_op", "enabled": true}}`, "condenser: {type: noop}")
	f(`{"condenser": {"kind": "NoOpCondenser"}}`, "condenser: {type: noop}")
	f(`{"condenser": {"condenser_kind": "LLMSummarizingCondenser", "enabled": true}}`, "condenser: {type: llm, trigger: limits}")
	f(`{"kind": "Agent", "tools": [{"name": "terminal"}], "mcp_config": {"a": "${UNSET}"}, "condenser": {"kind": "LLMSummarizingCondenser", "max_size": 80,
		"llm": {"model": "gpt-4o-mini", "api_key": "**********", "usage_id": "condenser", "temperature": null, "timeout": 300}}}`,
		"llms: {condenser: {model: gpt-4o-mini, timeout: 300s}}\ncondenser: {type: llm, trigger: limits, max_size: 80, llm_config: condenser}",
		"llm.condenser.api_key: is a mask in place of the key, and is not used: write the key (line 2)",
		"kind, mcp_config, tools, llm.condenser.usage_id: belong to OpenHands and have no effect here: they may stay (line 1)")
	f(`{"agent_settings": {"schema_version": 2, "agent_kind": "openhands", "agent": "CodeActAgent", "condenser": {"condenser_kind": "no_op"}}, "conversation_settings": {}}`,
		"condenser: {type: noop}",
		"conversation_settings, agent, agent_kind, schema_version: belong to OpenHands and have no effect here: they may stay (line 1)")

	_, err := buildText(".json", `{"condenser": {"condenser_kind": "telepathy", "enabled": true}, "tools": [], "colour": 1}`)
	wantProblems(t, err,
		"colour: is not a known key: use one of "+topKeys()+" (line 1)",
		`condenser.type: "telepathy" is not a condenser type: use one of `+join(catalogue.Types())+" (line 1)")
	_, err = buildText(".yaml", "tools: []") // not a file of OpenHands
	wantProblems(t, err, "tools: is not a known key: use one of "+topKeys()+" (line 1)")
}

// TestCondensersInTOMLKnowLimitsOnly: TOML is OpenHands' format, and a user who moves from there gets what the file meant there.
func TestCondensersInTOMLKnowLimitsOnly(t *testing.T) {
	const key = "api_keys = [{env = \"KEY\"}]\n"
	f := func(text string, want string, trigger func(*config.Config) string) {
		t.Helper()
		if got := trigger(mustBuild(t, ".toml", text, "KEY=1")); got != want {
			t.Errorf("%s\nhas the trigger %q, want %q", text, got, want)
		}
	}
	own := func(c *config.Config) string { return c.Condenser.Trigger }
	f("[condenser]\ntype = \"llm\"\nmax_size = 80", catalogue.TriggerLimits, own)
	f("[condenser]\nmax_size = 80", catalogue.TriggerLimits, own)
	f("[condenser]\ntype = \"llm\"\ntrigger = \"economics\"", catalogue.TriggerEconomics, own)
	f("[condenser]\ntype = \"noop\"", "", own)
	f("[condenser]", catalogue.TriggerEconomics, own)
	f("[condenser]\ntype = \"pipeline\"\ncondensers = [{type = \"lossless_trim\"}, {type = \"amortized\"}]", catalogue.TriggerLimits,
		func(c *config.Config) string {
			return c.Condenser.Condensers[0].Trigger + c.Condenser.Condensers[1].Trigger
		})
	f("[[tenants]]\nname = \"a\"\n"+key+"[tenants.condenser]\ntype = \"excerpts\"", catalogue.TriggerLimits,
		func(c *config.Config) string { return c.Tenants[0].Condenser.Trigger })
	if got := own(mustBuild(t, ".yaml", "condenser: {type: llm, max_size: 80}")); got != catalogue.TriggerEconomics {
		t.Errorf("in YAML the trigger is %q", got)
	}
}

// TestCondenserWithoutAType: a key that only summaries have asks for them; else no model is called.
func TestCondenserWithoutAType(t *testing.T) {
	for text, want := range map[string]string{
		"condenser: {max_size: 80}": catalogue.TypeExcerpts, "condenser: {trigger: limits}": catalogue.TypeExcerpts,
		"llms: {cheap: {model: gpt-4o-mini}}\ncondenser: {llm_config: cheap}": catalogue.TypeLLM, "condenser: {wait: deadline}": catalogue.TypeLLM,
	} {
		if got := mustBuild(t, ".yaml", text).Condenser.Type; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestEmptyCondenserChangesNothing: it means the same as none, for the operator and for tenants.
func TestEmptyCondenserChangesNothing(t *testing.T) {
	if got := mustBuild(t, ".yaml", "condenser: {}").Condenser; !reflect.DeepEqual(got, config.Default().Condenser) {
		t.Errorf("the condenser is %+v", got)
	}
	cfg := mustBuild(t, ".yaml", "tenants: {a: {api_keys: [{env: KEY}], condenser: {}}, b: {api_keys: [{env: KEY_2}], condenser: }}\ncondenser: {type: noop}", "KEY=1", "KEY_2=2")
	for _, tenant := range cfg.Tenants {
		if got := cfg.CondenserFor(tenant); got.Type != catalogue.TypeNoop {
			t.Errorf("the condenser of %s is %+v", tenant.Name, got)
		}
	}
	_, err := buildText(".yaml", "condenser: {type: pipeline, condensers: [{}]}")
	wantProblems(t, err, "condenser.condensers[0].type: is missing: use one of "+join(catalogue.Types())+" (line 1)")
	if got := mustBuild(t, ".yaml", "condenser: {}", "DEWPOINT_CONDENSER_MAX_SIZE=80").Condenser; got.MaxSize != 80 {
		t.Errorf("with a variable the condenser is %+v", got)
	}
}

func join(names []string) string { return strings.Join(names, ", ") }

func topKeys() string { return join(syntax.KeysOf(reflect.TypeFor[config.Config]())) }
