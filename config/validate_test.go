package config

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestTypesAreValidWithTheirDefaults(t *testing.T) {
	for _, e := range catalogue.Entries() {
		cfg := Default()
		cfg.Condenser = e.Settings()
		if e.Has("url") {
			cfg.Condenser.URL = "http://localhost:9000"
		}
		if e.Wraps() {
			cfg.Condenser.Condensers = []Condenser{catalogue.Default(catalogue.TypeNoop)}
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s with its defaults: %v", e.Type, err)
		}
	}
}

func TestAliases(t *testing.T) {
	for alias, want := range map[string]string{
		"browser_output_masking": catalogue.TypeBrowserOutput, "recent": catalogue.TypeRecentEvents, "amortized": catalogue.TypeAmortizedForgetting,
		"llm_summarizing": catalogue.TypeLLM, "structured": catalogue.TypeStructuredSummary,
	} {
		if got, known := catalogue.Find(alias); got.Type != want || !known {
			t.Errorf("%s became %s", alias, got.Type)
		}
		cfg := Default()
		cfg.Condenser.Type = alias
		wantProblems(t, cfg.Validate(), fmt.Sprintf("condenser.type: %q is an alias of %q: use that", alias, want))
	}
}

// A Condenser built in Go is also limited to the keys of its type.
func TestForeignFields(t *testing.T) {
	cfg := Default()
	cfg.Condenser = Condenser{Type: catalogue.TypeNoop, MaxSize: 5, Condensers: []Condenser{{}}}
	wantProblems(t, cfg.Validate(),
		`condenser.max_size: does not belong to type "noop": remove it, this type has no keys`,
		`condenser.condensers: does not belong to type "noop": remove it, this type has no keys`)
}

func TestKeepFirstBounds(t *testing.T) {
	for _, c := range []struct {
		condenserType      string
		maxSize, keepFirst int
		valid              bool
	}{
		{catalogue.TypeLLM, 240, 118, true}, {catalogue.TypeLLM, 240, 119, false}, {catalogue.TypeLLM, 240, 120, false},
		{catalogue.TypeLLM, 4, 0, true}, {catalogue.TypeLLM, 2, 0, false}, {catalogue.TypeLLM, 1, 0, false}, {catalogue.TypeLLM, 7, 1, true}, {catalogue.TypeLLM, 7, 2, false},
		{catalogue.TypeStructuredSummary, 6, 1, true}, {catalogue.TypeStructuredSummary, 6, 2, false},
		{catalogue.TypeAmortizedForgetting, 4, 1, true}, {catalogue.TypeAmortizedForgetting, 4, 2, false}, {catalogue.TypeAmortizedForgetting, 2, 0, true},
		{catalogue.TypeExcerpts, 4, 1, true}, {catalogue.TypeExcerpts, 4, 2, false},
		{catalogue.TypeLLMAttention, 4, 1, true}, {catalogue.TypeLLMAttention, 5, 2, false},
	} {
		cfg := Default()
		cfg.Condenser = catalogue.Default(c.condenserType)
		cfg.Condenser.MaxSize, cfg.Condenser.KeepFirst = c.maxSize, c.keepFirst
		if err := cfg.Validate(); (err == nil) != c.valid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Nesting of pipelines is bounded.
func TestPipelineDepth(t *testing.T) {
	cfg, list := Default(), "condenser"
	cfg.Condenser = catalogue.Default(catalogue.TypeNoop)
	for range maxPipelineDepth {
		cfg.Condenser = Condenser{Type: catalogue.TypePipeline, Condensers: []Condenser{cfg.Condenser}}
		list += ".condensers[0]"
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Condenser = Condenser{Type: catalogue.TypePipeline, Condensers: []Condenser{cfg.Condenser}}
	wantProblems(t, cfg.Validate(), list+".condensers: is nested too deeply: write the pipelines as one list")
}

func TestMaxTokensBounds(t *testing.T) {
	for tokens, valid := range map[float64]bool{
		0.01: true, 0.75: true, 1: true, 2: true, 100000: true,
		0: false, -1: false, 1.5: false, 100.25: false, math.Inf(1): false, math.NaN(): false,
	} {
		cfg := Default()
		cfg.Condenser.MaxTokens = tokens
		if err := cfg.Validate(); (err == nil) != valid {
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
		if err := cfg.Validate(); (err != nil) != needsToken {
			t.Errorf("%s without a token: %v", listen, err)
		}
		cfg.Admin.Token = "a-token"
		if err := cfg.Validate(); err != nil {
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
		if err := cfg.Validate(); (err == nil) != valid {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}

// The cap is for the embedded store. With Redis only the default is valid, since it was not configured.
func TestStoreSize(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		size  limit.Bytes
		valid bool
	}{
		{StoreEmbedded, DefaultStoreSize, true}, {StoreEmbedded, 0, true}, {StoreEmbedded, 1, true}, {StoreEmbedded, -1, false},
		{StoreRedis, DefaultStoreSize, true}, {StoreRedis, 0, false}, {StoreRedis, 1 << 30, false}, {StoreRedis, -1, false},
	} {
		cfg := Default()
		cfg.Store.Type, cfg.Store.MaxSize = tt.kind, tt.size
		if err := cfg.Validate(); (err == nil) != tt.valid {
			t.Errorf("%s with %d: %v", tt.kind, tt.size, err)
		}
	}
}
