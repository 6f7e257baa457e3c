package source

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func TestNothingConfigured(t *testing.T) {
	for _, file := range []string{"", "testdata/good.empty.yaml", "testdata/good.empty.toml"} {
		cfg, err := Load(Input{File: file})
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		if !reflect.DeepEqual(cfg, config.Default()) {
			t.Errorf("%q gave %+v", file, cfg)
		}
	}
	excerpts := config.Condenser{
		Type: catalogue.TypeExcerpts, Trigger: catalogue.TriggerEconomics, MaxSize: 240, MaxTokens: 0.75, MinTokens: 4000, KeepFirst: 2, MinimumProgress: 0.1,
	}
	if got := config.Default().Condenser; !reflect.DeepEqual(got, excerpts) {
		t.Errorf("the default condenser is %+v", got)
	}
}

func TestReference(t *testing.T) {
	want := config.Default()
	want.Upstream.BaseURL = "https://api.openai.com/v1"
	want.LLMs["cheap"] = config.LLM{Model: "gpt-4o-mini"}
	want.Models["my-model"] = info(128000, 16000, model.EncodingO200k, price(2, 0.5, 2, 8))
	want.Condenser = catalogue.Default(catalogue.TypeLLM)
	want.Condenser.LLMConfig = "cheap"
	stage := catalogue.Default(catalogue.TypeLLM)
	stage.MaxSize = 80
	pipeline := config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{catalogue.Default(catalogue.TypeToolOutputTrim), stage}}
	want.Tenants = []config.Tenant{{
		Name: "team-a",
		APIKeys: []config.APIKey{
			{SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
			{Env: "TEAM_A_KEY", Value: "abc"},
		},
		Upstream:  config.Upstream{APIKey: "..."},
		Condenser: &pipeline,
		Observe:   new(false),
	}}
	for _, file := range []string{"testdata/good.reference.yaml", "testdata/good.reference.toml"} {
		cfg := mustLoad(t, Input{File: file, Env: fixtureEnv()})
		if !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s gave\n%s\nwant\n%s", file, effective(t, cfg), effective(t, want))
		}
	}
}

func TestOpenHands(t *testing.T) {
	cfg := mustLoad(t, Input{File: "testdata/good.openhands.toml", Env: fixtureEnv()})
	zero := 0.0
	want := map[string]config.LLM{"condenser": {
		Model: "gpt-4o-mini", APIKey: "oh", Timeout: 2 * time.Minute, MaxOutput: 4096, Temperature: &zero,
	}}
	if !reflect.DeepEqual(cfg.LLMs, want) {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
	var types []string
	for _, stage := range cfg.Condenser.Condensers {
		types = append(types, stage.Type)
	}
	if !slices.Equal(types, []string{catalogue.TypeBrowserOutput, catalogue.TypeRecentEvents, catalogue.TypeAmortizedForgetting, catalogue.TypeStructuredSummary}) {
		t.Errorf("types are %v", types)
	}
	if got := cfg.Condenser.Condensers[3]; got.MaxEventLength != 5000 || got.LLMConfig != "condenser" || got.MaxSize != 100 {
		t.Errorf("the last stage is %+v", got)
	}
	wantProblems(t, cfg.Warnings,
		"llm.condenser.max_input_tokens: belongs to OpenHands and has no effect here: set models.gpt-4o-mini.context_window (line 10)",
		"llm.num_retries, llm.condenser.completion_kwargs: belong to OpenHands and have no effect here: they may stay (line 4)")
}

// The keys of [llm] itself make the entry "llm", the name that OpenHands uses in llm_config.
func TestOpenHandsBaseModel(t *testing.T) {
	cfg := mustBuild(t, ".toml", `
[llm]
model = "a"
top_p = 1.0
[llm.other]
model = "b"
[condenser]
type = "llm"
llm_config = "llm"
`)
	if cfg.LLMs["llm"].Model != "a" || cfg.LLMs["other"].Model != "b" || cfg.Condenser.LLMConfig != "llm" {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
}

func TestAnchors(t *testing.T) {
	cfg := mustLoad(t, Input{File: "testdata/good.anchors.yaml"})
	want := map[string]config.LLM{
		"cheap": {Model: "gpt-4o-mini", Timeout: 20 * time.Second},
		"dear":  {Model: "gpt-4o", Timeout: 20 * time.Second},
	}
	if !reflect.DeepEqual(cfg.LLMs, want) {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
}

func TestValuesOfFiles(t *testing.T) {
	redis := mustLoad(t, Input{File: "testdata/good.redis.yaml"}).Store.Redis
	if redis.Password.Reveal() != "007" || redis.DB != 3 || !redis.TLS || !slices.Equal(redis.Addrs, []string{"a:6379", "b:6379"}) {
		t.Errorf("redis is %+v", redis)
	}
	exposed := mustLoad(t, Input{File: "testdata/good.exposed.yaml"})
	want := config.Limits{
		MaxBody: 1e6, BytesInFlight: 8 << 20, MaxHeader: 4096,
		UpstreamResponseHeaderTimeout: 10 * time.Minute, StreamKeepAlive: 5 * time.Second, SummariserTimeout: 90 * time.Second,
	}
	if exposed.Limits != want {
		t.Errorf("limits are %+v", exposed.Limits)
	}
}

func TestPrecedence(t *testing.T) {
	file := "testdata/good.exposed.yaml"
	env := []string{"DEWPOINT_LISTEN=127.0.0.1:1", "DEWPOINT_LOG_LEVEL=warn", "DEWPOINT_UPSTREAM_BASE_URL=http://env/v1"}
	cfg := mustLoad(t, Input{File: file, Env: env, Flags: map[string]string{"listen": "127.0.0.1:2", "upstream": "http://flag/v1"}})
	if cfg.Listen != "127.0.0.1:2" || cfg.Log.Level != "warn" || cfg.Log.Format != "console" || cfg.Upstream.BaseURL != "http://flag/v1" {
		t.Errorf("got\n%s", effective(t, cfg))
	}
	if cfg.Store.Path != config.Default().Store.Path {
		t.Errorf("store.path is %q", cfg.Store.Path)
	}
}

func TestFileNamedByEnvironment(t *testing.T) {
	env := []string{"DEWPOINT_CONFIG=testdata/good.exposed.yaml"}
	if cfg := mustLoad(t, Input{Env: env}); cfg.Listen != ":8080" {
		t.Errorf("listen is %q", cfg.Listen)
	}
	if cfg := mustLoad(t, Input{Env: env, File: "testdata/good.empty.yaml"}); cfg.Listen != "127.0.0.1:8080" {
		t.Errorf("the variable won over File: listen is %q", cfg.Listen)
	}
}

func TestFlags(t *testing.T) {
	cfg := mustLoad(t, Input{Flags: map[string]string{"store.path": "x.db", "admin.listen": "127.0.0.1:0", "store-ttl": "1h"}})
	if cfg.Store.Path != "x.db" || cfg.Admin.Listen != "127.0.0.1:0" || cfg.Store.TTL != time.Hour {
		t.Errorf("got\n%s", effective(t, cfg))
	}
	_, err := Load(Input{Flags: map[string]string{"upstrem": "x", "listen": "nowhere"}})
	wantProblems(t, err,
		"--upstrem: names no configuration key: correct its name, or remove it",
		"listen: is not host:port: write it as 127.0.0.1:8080 (--listen)")
}

// A value from the environment takes the type of its key, wherever it is used. Keys are not expanded.
func TestExpandedValues(t *testing.T) {
	t.Setenv("DEWPOINT_UNRELATED", "the process's own environment is never read")
	text := `
condenser: {type: "${TYPE}", max_events: "${SIZE}"}
store: {content: "${NO}", ttl: "${HOURS}h", redis: {addrs: "${ADDRS}"}}
llms: {"${TYPE}": {model: m, temperature: "${HALF}"}}
`
	env := []string{"TYPE=recent", "SIZE=50", "NO=false", "HOURS=5", "ADDRS=a:1, b:2", "HALF=0.5"}
	cfg := mustBuild(t, ".yaml", text, env...)
	if cfg.Condenser.Type != catalogue.TypeRecentEvents || cfg.Condenser.MaxEvents != 50 || cfg.Store.Content || cfg.Store.TTL != 5*time.Hour {
		t.Errorf("got\n%s", effective(t, cfg))
	}
	if !slices.Equal(cfg.Store.Redis.Addrs, []string{"a:1", "b:2"}) {
		t.Errorf("addresses are %q", cfg.Store.Redis.Addrs)
	}
	if llm, ok := cfg.LLMs["${TYPE}"]; !ok || *llm.Temperature != 0.5 {
		t.Errorf("llms are %v", cfg.LLMs)
	}
	_, err := buildText(".yaml", text, append(env, "SIZE=sk-verysecret", "NO=maybe", "HALF=much")...)
	wantProblems(t, err,
		"condenser.max_events: is not a whole number: write digits only (line 2)",
		"store.content: is neither true nor false: write one of them (line 3)",
		`llms["${TYPE}"].temperature: is not a finite number: write it as 0.75 (line 4)`)
}

// mustLoad loads a valid configuration.
func mustLoad(t *testing.T, src Input) *config.Config {
	t.Helper()
	cfg, err := Load(src)
	if err != nil {
		t.Fatalf("load %+v: %v", src, err)
	}
	return cfg
}

// buildText loads the text of a file.
func buildText(extension, text string, env ...string) (*config.Config, error) {
	p := &problems{}
	root := document{problems: p, name: "file"}.parse(extension, []byte(text))
	if root == nil {
		return nil, p.list.Err()
	}
	return checked(build(root, Input{}, environment(env), p), Input{}, p)
}

func mustBuild(t *testing.T, extension, text string, env ...string) *config.Config {
	t.Helper()
	cfg, err := buildText(extension, text, env...)
	if err != nil {
		t.Fatalf("load %s: %v", text, err)
	}
	return cfg
}

// The bound on the depth of a file allows almost the deepest valid pipelines.
func TestDeepPipeline(t *testing.T) {
	const depth = 14
	text := strings.Repeat("{type: pipeline, condensers: [", depth) + "{type: noop}" + strings.Repeat("]}", depth)
	mustBuild(t, ".yaml", "condenser: "+text)
}

func TestAliasOfType(t *testing.T) {
	if got := mustBuild(t, ".yaml", "condenser: {type: recent}").Condenser.Type; got != catalogue.TypeRecentEvents {
		t.Errorf("recent became %s", got)
	}
}

func TestProblemsOfWrappedErrors(t *testing.T) {
	_, err := Load(Input{Flags: map[string]string{"listen": "x"}})
	wantProblems(t, fmt.Errorf("start: %w", err), "listen: is not host:port: write it as 127.0.0.1:8080 (--listen)")
	if found := problemsOf(fmt.Errorf("other")); found != nil || problemsOf(nil) != nil {
		t.Errorf("an error without problems has %v", found)
	}
}

// Each key in TOML has its own line, wherever it is, and every spelling of a value is understood.
func TestTOML(t *testing.T) {
	_, err := buildText(".toml", "[limits]\nmax_body = 0x1_000_000\ntenant = {concurrent = 1,\n  nothing = 2}\n"+
		"[store]\nredis.nothing = 1\n[[tenants]]\n[[tenants]]\nnothing = 1\n[tenants.upstream]\nnothing = 1\n")
	var lines []string
	for _, problem := range problemsOf(err) {
		if strings.HasSuffix(problem.Key, "nothing") {
			lines = append(lines, problem.Key+" "+problem.Origin)
		}
	}
	want := []string{
		"limits.tenant.nothing line 4", "store.redis.nothing line 6", "tenants[1].nothing line 9",
		"tenants[1].upstream.nothing line 11",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	cfg := mustBuild(t, ".toml", "limits.max_body = 0x1_000_000\ncondenser.max_tokens = 5e-1\ncondenser.max_size = +2_4\n"+
		"session.headers = [\n  'a', # one\n  \"\"\"b\"\"\",\n]\n")
	if cfg.Limits.MaxBody != 1<<24 || cfg.Condenser.MaxTokens != 0.5 || cfg.Condenser.MaxSize != 24 ||
		!slices.Equal(cfg.Session.Headers, []string{"a", "b"}) {
		t.Errorf("got\n%s", effective(t, cfg))
	}
}
