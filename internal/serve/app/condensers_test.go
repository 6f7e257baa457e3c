package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// stages returns sections of an OpenHands configuration by condenser type, in OpenHands' and our own spelling. Pipelines are left out.
func stages() map[string]string {
	const calling = "llm_config = 'condenser'\n"
	own := map[string]string{ // others have their defaults
		"observation_masking":    "attention_window = 100\n",
		"browser_output":         "attention_window = 2\n",
		"browser_output_masking": "attention_window = 2\n",
		"recent_events":          "keep_first = 1\nmax_events = 100\n",
		"recent":                 "keep_first = 1\nmax_events = 100\n",
		"llm":                    calling + "max_event_length = 5000\n",
		"llm_summarizing":        calling,
		"structured_summary":     calling,
		"structured":             calling + "max_event_length = 5000\n",
		"llm_attention":          calling,
		"custom":                 "url = \"http://condenser\"\n",
		"tool_output_trim":       "max_event_length = 5000\n",
	}
	all := map[string]string{}
	for _, e := range catalogue.Entries() {
		for _, name := range []string{e.Type, e.Alias} {
			if name == "" || e.Wraps() {
				continue
			}
			if all[name] = own[name]; e.Rolling() {
				all[name] += "max_size = 100\nkeep_first = 1\n"
			}
		}
	}
	return all
}

const openHandsModels = `
[llm]
model = "gpt-4o"
api_key = "key"
[llm.condenser]
model = "gpt-4o-mini"
temperature = 0.1
max_input_tokens = 100000
`

func TestEveryTypeLoadsAndBuilds(t *testing.T) {
	var pipeline strings.Builder
	sections := stages()
	for _, kind := range slices.Sorted(maps.Keys(sections)) {
		keys := sections[kind]
		fmt.Fprintf(&pipeline, "[[condenser.condensers]]\ntype = %q\n%s", kind, keys)
		e, _ := catalogue.Find(kind)
		wantStarts(t, e.Type, openHandsModels+fmt.Sprintf("[condenser]\ntype = %q\n%s", kind, keys))
	}
	wantStarts(t, catalogue.TypePipeline, openHandsModels+"[condenser]\ntype = 'pipeline'\n"+pipeline.String())
	wantStarts(t, catalogue.TypePipeline, openHandsModels+`
[condenser]
type = "pipeline"
[[condenser.condensers]]
type = "pipeline"
[[condenser.condensers.condensers]]
type = "structured"
llm_config = "llm"
`)
}

// unshared returns calls that are not measured and use the given transport.
func unshared(t testing.TB, transport http.RoundTripper) *calls {
	t.Helper()
	return newCalls(transport, zap.NewNop())
}

// TestFixturesBuild builds the tenants of every valid configuration in config's test data.
func TestFixturesBuild(t *testing.T) {
	files, err := filepath.Glob("../../../config/source/testdata/good.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		cfg, err := source.Load(source.Input{
			File: file, Env: []string{"TEAM_A_KEY=abc", "KEY=k1", "KEY_2=k2", "OPENHANDS_KEY=oh",
				"ENCRYPTION_KEY=ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"},
		})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if _, err := buildTenants(cfg, unshared(t, nil)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// wantStarts starts the service with a configuration file.
func wantStarts(t *testing.T, name, text string) {
	t.Helper()
	cfg := load(t, ".toml", text)
	tenant, err := buildTenant(cfg, unshared(t, nil), config.Tenant{Name: "a"})
	if err != nil {
		t.Errorf("%v of\n%s", err, text)
		return
	}
	if got := tenant.Condenser.Name(); got != name {
		t.Errorf("the condenser is %q, want %q", got, name)
	}
	a, err := New(cfg, zap.NewNop(), Options{})
	if err != nil {
		t.Errorf("%v of\n%s", err, text)
		return
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// load parses a configuration and gives it the test's own store and ports.
func load(t *testing.T, extension, text string) *config.Config {
	t.Helper()
	cfg, err := tryLoad(t, extension, text)
	if err != nil {
		t.Fatalf("%v of\n%s", err, text)
	}
	return cfg
}

func tryLoad(t *testing.T, extension, text string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config"+extension)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return source.Load(source.Input{
		File: file, Env: []string{"KEY=k"},
		Flags: map[string]string{"listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "store.path": filepath.Join(dir, "x.db")},
	})
}

func TestInvalidConfigurationAtStart(t *testing.T) {
	for text, want := range map[string]string{
		`{type: sliding}`: "condenser.type: ",
		`{type: pipeline, condensers: [{type: noop}, {type: llm, llm_config: nobody}]}`:                   "condenser.condensers[1].llm_config: ",
		`{type: pipeline, condensers: [{type: pipeline, condensers: [{type: structured, max_size: 2}]}]}`: "condenser.condensers[0].condensers[0].keep_first: ",
		`{type: llm_attention, max_size: 6, per_model: {gpt-4o: {keep_first: 3}}}`:                        "condenser.per_model.gpt-4o.keep_first: ",
	} {
		_, err := tryLoad(t, ".yaml", "condenser: "+text)
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("%s gave %v", text, err)
		}
	}
}

// TestBuilderRefuses checks that the builder rejects configurations that were built in Go and never validated.
func TestBuilderRefuses(t *testing.T) {
	cfg := config.Default()
	stage := catalogue.Default(catalogue.TypeLLM)
	stage.LLMConfig = "nobody"
	inner := config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{{Type: catalogue.TypeNoop}, stage}}
	masking := catalogue.Default(catalogue.TypeObservationMasking)
	masking.PerModel = map[string]config.Override{"o3": {}}
	for want, c := range map[string]config.Condenser{
		`condenser.type: "sliding" is not a condenser type`:                 {Type: "sliding"},
		`condenser.type: "" is not a condenser type`:                        {},
		`condenser.condensers[1].condensers[1].llm_config: "nobody" is not`: {Type: catalogue.TypePipeline, Condensers: []config.Condenser{masking, inner}},
	} {
		_, err := buildTenant(cfg, unshared(t, nil), config.Tenant{Name: "a", Condenser: &c})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v gave %v", c, err)
		}
	}
}

func TestTenantFlags(t *testing.T) {
	cfg := load(t, ".yaml", `
tenants:
  - {name: a, api_keys: [{env: KEY}], notify: true}
  - {name: b, api_keys: [{sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}], observe: true}
`)
	for i, want := range []struct{ notify, observe bool }{{notify: true}, {observe: true}} {
		tenant, err := buildTenant(cfg, unshared(t, nil), cfg.Tenants[i])
		if err != nil || tenant.Notify != want.notify || tenant.Observe != want.observe {
			t.Errorf("%d: %+v, %v", i, tenant, err)
		}
	}
	only := load(t, ".yaml", "notify: true").EveryTenant()[0]
	if tenant, err := buildTenant(cfg, unshared(t, nil), only); err != nil || !tenant.Notify || tenant.Name != "default" {
		t.Errorf("%+v, %v", tenant, err)
	}
}

// TestReloadRefuses checks that the configuration in force stays if a new one cannot be built.
func TestReloadRefuses(t *testing.T) {
	cfg := load(t, ".yaml", "condenser: {type: recent, max_events: 5}")
	a, err := New(cfg, zap.NewNop(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	bad := *cfg
	bad.Condenser = config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{{Type: "sliding"}}}
	if err := a.Reload(&bad); err == nil || !strings.Contains(err.Error(), "condenser.condensers[0].type") {
		t.Errorf("reload gave %v", err)
	}
	if a.tokens.config.Load() != cfg {
		t.Error("the refused configuration is in force in part")
	}
	if err := a.Reload(load(t, ".yaml", "condenser: {type: noop}")); err != nil {
		t.Error(err)
	}
}

// build returns the condenser of a configuration without tenants.
func build(t *testing.T, text string) condense.Condenser {
	t.Helper()
	cfg := load(t, ".yaml", text)
	tenant, err := buildTenant(cfg, unshared(t, nil), cfg.EveryTenant()[0])
	if err != nil {
		t.Fatal(err)
	}
	return tenant.Condenser
}

func TestPerModel(t *testing.T) {
	c := build(t, `
condenser:
  type: pipeline
  condensers:
    - {type: noop}
    - type: recent_events
      max_events: 20
      keep_first: 1
      per_model:
        gpt-4o: {max_events: 4}
        "gpt-4o*": {max_events: 6}
        "gpt-*": {max_events: 8}
        "gpt-4o-mini*": {max_events: 10}
        o3: {max_events: 12, keep_first: 10}
`)
	for model, want := range map[string]int{
		"gpt-4o": 4, "gpt-4o-2024-08-06": 6, "gpt-4.1": 8, "gpt-4o-mini": 10, "gpt-4o-mini-x": 10, "o3": 12,
		"o3-mini": 20, "GPT-4o": 20, "openai/gpt-4o": 20, "": 20, "gpt": 20,
	} {
		in := input(40)
		in.Model = model
		if d := c.Condense(in); d.View == nil || len(d.View.Items) != want {
			t.Errorf("%q: %+v, want %d events", model, d.View, want)
		}
	}
	stage := c.(condense.Pipeline).Stages[1]
	if got := stage.Name(); got != "recent_events" {
		t.Errorf("the stage is called %q", got)
	}
}

// TestPerModelKeepsWhatItDoesNotSet checks that an override without keep_first uses the condenser's.
func TestPerModelKeepsWhatItDoesNotSet(t *testing.T) {
	c := build(t, "condenser: {type: recent, max_events: 30, keep_first: 4, per_model: {o3: {max_events: 8}}}")
	in := input(40)
	in.Model = "o3"
	d := c.Condense(in)
	var kept []int
	for _, item := range d.View.Items {
		kept = append(kept, item.Index)
	}
	if want := []int{0, 1, 2, 3, 4, 37, 38, 39}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
}

func TestPerModelTriggers(t *testing.T) {
	c := build(t, "condenser: {type: llm, max_size: 20, per_model: {o3: {max_size: 50}, o4: {max_tokens: 2000}}}")
	for model, want := range map[string]session.Reason{"any": session.ReasonEvents, "o3": "", "o4": session.ReasonTokens} {
		in := input(40)
		in.Model = model
		if got := reason(c.Condense(in)); got != want {
			t.Errorf("%s: reason %q, want %q", model, got, want)
		}
	}
}

// TestPromptFileIsChecked: a condenser whose prompt cannot be used is refused, with its key, and what to do about it.
func TestPromptFileIsChecked(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "Write a diary.", "empty": " \n", "long": strings.Repeat("x", maxPrompt+1), "binary": "\xff"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"good": "", "empty": "is empty", "long": "is longer than", "binary": "not text", "missing": "create the file"} {
		cfg := load(t, ".yaml", fmt.Sprintf("condenser: {type: llm, prompt_file: %q}", filepath.Join(dir, name)))
		err := checkTenants(cfg)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "condenser.prompt_file: ")):
			t.Errorf("%s: %v, want that it %s", name, err, want)
		}
	}
}

// TestHealthIsSharedByStages checks that every stage that calls a failed model backs off, and that other stages do not.
func TestHealthIsSharedByStages(t *testing.T) {
	out := unshared(t, nil)
	cfg := load(t, ".yaml", `
upstream: {base_url: "http://main/v1"}
llms: {cheap: {model: gpt-4o-mini}, other: {model: gpt-4.1-mini}}
condenser:
  type: pipeline
  condensers: [{type: llm, max_size: 30, llm_config: cheap}, {type: pipeline, condensers: [{type: structured, max_size: 20, llm_config: cheap}]}]
`)
	stages := &cfg.Condenser.Condensers[1].Condensers[0].LLMConfig
	in := input(40)
	in.Upstream = condense.Endpoint{BaseURL: "http://main/v1"}
	out.health.End(condense.Attempt{Endpoint: in.Upstream, Model: "gpt-4o-mini"}, &condense.CallError{Kind: condense.FailureServer})
	for llm, want := range map[string]session.Reason{"cheap": "", "other": session.ReasonEvents} {
		*stages = llm
		tenant, err := buildTenant(cfg, out, config.Tenant{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(tenant.Condenser.Condense(in)); got != want {
			t.Errorf("with %s: reason %q, want %q", llm, got, want)
		}
	}
}
