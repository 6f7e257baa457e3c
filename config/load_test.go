package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNothingConfigured(t *testing.T) {
	for _, file := range []string{"", "testdata/good.empty.yaml", "testdata/good.empty.toml"} {
		cfg, err := Load(Sources{File: file})
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		if !reflect.DeepEqual(cfg, Default()) {
			t.Errorf("%q gave %+v", file, cfg)
		}
	}
	llm := Condenser{Type: TypeLLM, MaxSize: 240, MaxTokens: 0.75, KeepFirst: 2, MinimumProgress: 0.1, MaxEventLength: 10000}
	if got := Default().Condenser; !reflect.DeepEqual(got, llm) {
		t.Errorf("the default condenser is %+v", got)
	}
}

func TestReference(t *testing.T) {
	want := Default()
	want.LLMs["cheap"] = LLM{Model: "gpt-4o-mini"}
	want.Models["my-model"] = Model{128000, 16000, EncodingO200k, Price{2, 0.5, 2, 8}}
	want.Condenser.LLMConfig = "cheap"
	stage := NewCondenser(TypeLLM)
	stage.MaxSize = 80
	pipeline := Condenser{Type: TypePipeline, Condensers: []Condenser{NewCondenser(TypeToolOutputTrim), stage}}
	want.Tenants = []Tenant{{
		Name: "team-a",
		APIKeys: []APIKey{
			{SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
			{Env: "TEAM_A_KEY", Value: "abc"},
		},
		Upstream:  Upstream{APIKey: "..."},
		Condenser: &pipeline,
	}}
	for _, file := range []string{"testdata/good.reference.yaml", "testdata/good.reference.toml"} {
		cfg := mustLoad(t, Sources{File: file, Env: fixtureEnv()})
		if !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s gave\n%s\nwant\n%s", file, cfg.Effective(), want.Effective())
		}
	}
}

func TestOpenHands(t *testing.T) {
	cfg := mustLoad(t, Sources{File: "testdata/good.openhands.toml", Env: fixtureEnv()})
	zero := 0.0
	want := map[string]LLM{"condenser": {
		Model: "gpt-4o-mini", APIKey: "oh", Timeout: 2 * time.Minute, MaxOutput: 4096, Temperature: &zero,
	}}
	if !reflect.DeepEqual(cfg.LLMs, want) {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
	var types []string
	for _, stage := range cfg.Condenser.Condensers {
		types = append(types, stage.Type)
	}
	if !slices.Equal(types, []string{TypeBrowserOutput, TypeRecentEvents, TypeAmortizedForgetting, TypeStructuredSummary}) {
		t.Errorf("types are %v", types)
	}
	if got := cfg.Condenser.Condensers[3]; got.MaxEventLength != 5000 || got.LLMConfig != "condenser" || got.MaxSize != 100 {
		t.Errorf("the last stage is %+v", got)
	}
	unused := []string{"llm.condenser.completion_kwargs", "llm.condenser.max_input_tokens", "llm.condenser.num_retries"}
	if !slices.Equal(cfg.Unused, unused) {
		t.Errorf("unused keys are %v", cfg.Unused)
	}
}

// The keys of [llm] itself make the entry "llm", as llm_config names it in OpenHands.
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
	cfg := mustLoad(t, Sources{File: "testdata/good.anchors.yaml"})
	want := map[string]LLM{
		"cheap": {Model: "gpt-4o-mini", Timeout: 20 * time.Second},
		"dear":  {Model: "gpt-4o", Timeout: 20 * time.Second},
	}
	if !reflect.DeepEqual(cfg.LLMs, want) {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
}

func TestValuesOfFiles(t *testing.T) {
	redis := mustLoad(t, Sources{File: "testdata/good.redis.yaml"}).Store.Redis
	if redis.Password.Reveal() != "007" || redis.DB != 3 || !redis.TLS || !slices.Equal(redis.Addrs, []string{"a:6379", "b:6379"}) {
		t.Errorf("redis is %+v", redis)
	}
	exposed := mustLoad(t, Sources{File: "testdata/good.exposed.yaml"})
	want := Limits{
		MaxBody: 1e6, BytesInFlight: 8 << 20, MaxHeader: 4096,
		UpstreamResponseHeaderTimeout: 10 * time.Minute, SummariserTimeout: 90 * time.Second,
	}
	if exposed.Limits != want {
		t.Errorf("limits are %+v", exposed.Limits)
	}
}

func TestPrecedence(t *testing.T) {
	file := "testdata/good.exposed.yaml"
	env := []string{"DEWPOINT_LISTEN=127.0.0.1:1", "DEWPOINT_LOG_LEVEL=warn", "DEWPOINT_UPSTREAM_BASE_URL=http://env/v1"}
	cfg := mustLoad(t, Sources{File: file, Env: env, Flags: map[string]string{"listen": "127.0.0.1:2", "upstream": "http://flag/v1"}})
	if cfg.Listen != "127.0.0.1:2" || cfg.Log.Level != "warn" || cfg.Log.Format != "console" || cfg.Upstream.BaseURL != "http://flag/v1" {
		t.Errorf("got\n%s", cfg.Effective())
	}
	if cfg.Store.Path != Default().Store.Path {
		t.Errorf("store.path is %q", cfg.Store.Path)
	}
}

func TestFileNamedByEnvironment(t *testing.T) {
	env := []string{"DEWPOINT_CONFIG=testdata/good.exposed.yaml"}
	if cfg := mustLoad(t, Sources{Env: env}); cfg.Listen != ":8080" {
		t.Errorf("listen is %q", cfg.Listen)
	}
	if cfg := mustLoad(t, Sources{Env: env, File: "testdata/good.empty.yaml"}); cfg.Listen != "127.0.0.1:8080" {
		t.Errorf("the variable won over File: listen is %q", cfg.Listen)
	}
}

func TestFlags(t *testing.T) {
	cfg := mustLoad(t, Sources{Flags: map[string]string{"store.path": "x.db", "admin.listen": "127.0.0.1:0", "store-ttl": "1h"}})
	if cfg.Store.Path != "x.db" || cfg.Admin.Listen != "127.0.0.1:0" || cfg.Store.TTL != time.Hour {
		t.Errorf("got\n%s", cfg.Effective())
	}
	_, err := Load(Sources{Flags: map[string]string{"upstrem": "x", "listen": "nowhere"}})
	wantProblems(t, err,
		"--upstrem: names no configuration key: correct its name, or remove it",
		"listen: is not host:port: write it as 127.0.0.1:8080 (--listen)")
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "NESTED": "${A}", "_x9": "y", "DOLLAR": "$"}
	for text, want := range map[string]string{
		"":                  "",
		"plain":             "plain",
		"${A}":              "1",
		"x${A}y${A}":        "x1y1",
		"${EMPTY}":          "",
		"${NESTED}":         "${A}",
		"${_x9}":            "y",
		"$A $ $$ $}":        "$A $ $$ $}",
		"$${A}":             "${A}",
		"$${":               "${",
		"$$${A}":            "$${A}",
		"$${A}${A}":         "${A}1",
		"${DOLLAR}{A}":      "${A}",
		"{A}":               "{A}",
		"price: 5$":         "price: 5$",
		"${A}$${A}$$${B} ü": "1${A}$${B} ü",
	} {
		if got, _, err := expand(text, env); got != want || err != nil {
			t.Errorf("expand(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${", "${}", "${A", "${A B}", "${9}", "${A:-x}", "${A-}", "${${A}}", "a ${ b", "${ä}"} {
		if got, _, err := expand(text, env); err == nil || !strings.Contains(err.Error(), "not ${NAME}") {
			t.Errorf("expand(%q) = %q, %v", text, got, err)
		}
	}
	if _, _, err := expand("${MISSING}", env); err == nil || !strings.Contains(err.Error(), "MISSING") {
		t.Errorf("an unset variable gave %v", err)
	}
}

// A value from the environment takes the type of its key, wherever it stands; keys are not expanded.
func TestExpandedValues(t *testing.T) {
	t.Setenv("DEWPOINT_UNRELATED", "the process's own environment is never read")
	text := `
condenser: {type: "${TYPE}", max_events: "${SIZE}"}
store: {content: "${NO}", ttl: "${HOURS}h", redis: {addrs: "${ADDRS}"}}
llms: {"${TYPE}": {model: m, temperature: "${HALF}"}}
`
	env := []string{"TYPE=recent", "SIZE=50", "NO=false", "HOURS=5", "ADDRS=a:1, b:2", "HALF=0.5"}
	cfg := mustBuild(t, ".yaml", text, env...)
	if cfg.Condenser.Type != TypeRecentEvents || cfg.Condenser.MaxEvents != 50 || cfg.Store.Content || cfg.Store.TTL != 5*time.Hour {
		t.Errorf("got\n%s", cfg.Effective())
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

// mustLoad loads what is right.
func mustLoad(t *testing.T, src Sources) *Config {
	t.Helper()
	cfg, err := Load(src)
	if err != nil {
		t.Fatalf("load %+v: %v", src, err)
	}
	return cfg
}

// buildText loads the text of a file.
func buildText(extension, text string, env ...string) (*Config, error) {
	p := &problems{}
	root := parse(extension, []byte(text), p)
	if root == nil {
		return nil, p.err()
	}
	cfg := build(root, Sources{}, environment(env), p)
	p.merge(cfg.Validate(nil))
	return cfg, p.err()
}

func mustBuild(t *testing.T, extension, text string, env ...string) *Config {
	t.Helper()
	cfg, err := buildText(extension, text, env...)
	if err != nil {
		t.Fatalf("load %s: %v", text, err)
	}
	return cfg
}

func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	for _, problem := range Problems(err) {
		got = append(got, problem.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestInFlight(t *testing.T) {
	f := func(set, maxBody Bytes, memory int64, want Bytes) {
		t.Helper()
		if got := (Limits{BytesInFlight: set, MaxBody: maxBody}).InFlight(memory); got != want {
			t.Errorf("of %d bytes of memory: %d, want %d", memory, got, want)
		}
	}
	f(0, 64<<20, 0, 512<<20)
	f(0, 64<<20, 8<<30, 512<<20)
	f(0, 64<<20, 512<<20, 128<<20)
	f(0, 64<<20, 128<<20, 64<<20) // one request must fit
	f(0, 1<<30, 0, 1<<30)
	f(700<<20, 64<<20, 512<<20, 700<<20)
}
