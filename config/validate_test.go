package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(nil); err != nil {
		t.Error(err)
	}
}

func TestAvailableTypes(t *testing.T) {
	running := func(name string) bool { return slices.Contains([]string{TypeNoop, TypeRecentEvents, TypeLLM}, name) }
	for _, name := range CondenserTypes() {
		cfg := Default()
		cfg.Condenser = NewCondenser(name)
		if name == TypePipeline {
			cfg.Condenser.Condensers = []Condenser{NewCondenser(TypeNoop)}
		}
		if err := cfg.Validate(nil); err != nil {
			t.Errorf("%s with its defaults: %v", name, err)
		}
		var want []string
		if !running(name) {
			want = []string{fmt.Sprintf("condenser.type: %q is not available in this version: use noop, recent_events, llm", name)}
		}
		wantProblems(t, cfg.Validate(running), want...)
	}
	_, err := Load(Sources{File: "testdata/good.reference.yaml", Env: fixtureEnv(), Available: running})
	wantProblems(t, err,
		`tenants[0].condenser.type: "pipeline" is not available in this version: use noop, recent_events, llm (line 26)`,
		`tenants[0].condenser.condensers[0].type: "tool_output_trim" is not available in this version: use noop, recent_events, llm (line 26)`)
}

func TestAliases(t *testing.T) {
	for alias, want := range map[string]string{
		"browser_output_masking": TypeBrowserOutput, "recent": TypeRecentEvents, "amortized": TypeAmortizedForgetting,
		"llm_summarizing": TypeLLM, "structured": TypeStructuredSummary,
	} {
		if got := mustBuild(t, ".yaml", "condenser: {type: "+alias+"}").Condenser; got.Type != want {
			t.Errorf("%s became %s", alias, got.Type)
		}
		cfg := Default()
		cfg.Condenser.Type = alias
		wantProblems(t, cfg.Validate(nil), fmt.Sprintf("condenser.type: %q is another name of %q: use that", alias, want))
	}
}

// A Condenser that was built in Go is held to the keys of its type too.
func TestForeignFields(t *testing.T) {
	cfg := Default()
	cfg.Condenser = Condenser{Type: TypeNoop, MaxSize: 5, Condensers: []Condenser{{}}}
	wantProblems(t, cfg.Validate(nil),
		`condenser.max_size: does not belong to type "noop": remove it, this type has no keys`,
		`condenser.condensers: does not belong to type "noop": remove it, this type has no keys`)
}

func TestKeepFirstBounds(t *testing.T) {
	for _, c := range []struct {
		condenserType      string
		maxSize, keepFirst int
		valid              bool
	}{
		{TypeLLM, 240, 118, true}, {TypeLLM, 240, 119, false}, {TypeLLM, 240, 120, false},
		{TypeLLM, 4, 0, true}, {TypeLLM, 2, 0, false}, {TypeLLM, 1, 0, false}, {TypeLLM, 7, 1, true}, {TypeLLM, 7, 2, false},
		{TypeStructuredSummary, 6, 1, true}, {TypeStructuredSummary, 6, 2, false},
		{TypeAmortizedForgetting, 4, 1, true}, {TypeAmortizedForgetting, 4, 2, false}, {TypeAmortizedForgetting, 2, 0, true},
		{TypeLLMAttention, 4, 1, true}, {TypeLLMAttention, 5, 2, false},
	} {
		cfg := Default()
		cfg.Condenser = NewCondenser(c.condenserType)
		cfg.Condenser.MaxSize, cfg.Condenser.KeepFirst = c.maxSize, c.keepFirst
		if err := cfg.Validate(nil); (err == nil) != c.valid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A file holds pipelines in pipelines as deep as anything else in it; what is built or set by variables ends somewhere.
func TestPipelineDepth(t *testing.T) {
	cfg, list := Default(), "condenser"
	cfg.Condenser = NewCondenser(TypeNoop)
	for range maxPipelineDepth {
		cfg.Condenser = Condenser{Type: TypePipeline, Condensers: []Condenser{cfg.Condenser}}
		list += ".condensers[0]"
	}
	if err := cfg.Validate(nil); err != nil {
		t.Error(err)
	}
	cfg.Condenser = Condenser{Type: TypePipeline, Condensers: []Condenser{cfg.Condenser}}
	wantProblems(t, cfg.Validate(nil), list+".condensers: is a pipeline in too many pipelines: write it as one list")

	text := strings.Repeat("{type: pipeline, condensers: [", maxPipelineDepth-2) + "{type: noop}" + strings.Repeat("]}", maxPipelineDepth-2)
	mustBuild(t, ".yaml", "condenser: "+text)
}

func TestMaxTokensBounds(t *testing.T) {
	for tokens, valid := range map[float64]bool{
		0.01: true, 0.75: true, 1: true, 2: true, 100000: true,
		0: false, -1: false, 1.5: false, 100.25: false, math.Inf(1): false, math.NaN(): false,
	} {
		cfg := Default()
		cfg.Condenser.MaxTokens = tokens
		if err := cfg.Validate(nil); (err == nil) != valid {
			t.Errorf("%v: %v", tokens, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for listen, needsToken := range map[string]bool{
		"127.0.0.1:9090": false, "127.8.8.8:9090": false, "localhost:9090": false, "[::1]:9090": false, "127.0.0.1:0": false,
		":9090": true, "0.0.0.0:9090": true, "[::]:9090": true, "10.0.0.1:9090": true, "admin.internal:9090": true,
	} {
		cfg := Default()
		cfg.Admin.Listen = listen
		if err := cfg.Validate(nil); (err != nil) != needsToken {
			t.Errorf("%s without a token: %v", listen, err)
		}
		cfg.Admin.Token = "a-token"
		if err := cfg.Validate(nil); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
}

func TestTTLBounds(t *testing.T) {
	for ttl, valid := range map[time.Duration]bool{
		time.Minute: true, maxTTL: true, time.Minute - 1: false, maxTTL + 1: false, 0: false, -time.Hour: false,
	} {
		cfg := Default()
		cfg.Store.TTL = ttl
		if err := cfg.Validate(nil); (err == nil) != valid {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}

// The cap is the embedded store's; with Redis only the default may stand, since it is what nobody wrote.
func TestStoreSize(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		size  Bytes
		valid bool
	}{
		{StoreEmbedded, DefaultStoreSize, true}, {StoreEmbedded, 0, true}, {StoreEmbedded, 1, true}, {StoreEmbedded, -1, false},
		{StoreRedis, DefaultStoreSize, true}, {StoreRedis, 0, false}, {StoreRedis, 1 << 30, false}, {StoreRedis, -1, false},
	} {
		cfg := Default()
		cfg.Store.Type, cfg.Store.MaxSize = tt.kind, tt.size
		if err := cfg.Validate(nil); (err == nil) != tt.valid {
			t.Errorf("%s with %d: %v", tt.kind, tt.size, err)
		}
	}
}

func TestProblemsOfWrappedErrors(t *testing.T) {
	_, err := Load(Sources{Flags: map[string]string{"listen": "x"}})
	wantProblems(t, fmt.Errorf("start: %w", err), "listen: is not host:port: write it as 127.0.0.1:8080 (--listen)")
	if found := Problems(fmt.Errorf("other")); found != nil || Problems(nil) != nil {
		t.Errorf("an error without problems has %v", found)
	}
}
