package source

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestEffectiveRoundTrip(t *testing.T) {
	files, err := filepath.Glob("testdata/good.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		cfg := mustLoad(t, Input{File: file, Env: fixtureEnv()})
		wantRoundTrip(t, cfg)
	}
}

// wantRoundTrip loads the output of Effective, and checks that the result is the same except for secrets.
func wantRoundTrip(t testing.TB, cfg *config.Config) {
	t.Helper()
	text := effective(t, cfg)
	redacted := strings.Split(string(text), config.Redacted)
	filled := redacted[0]
	for i, rest := range redacted[1:] {
		if strings.HasSuffix(filled, `url: "`) {
			filled += "rediss://"
		}
		filled += fmt.Sprintf("%064x", i) + rest // valid secrets: some must be keys, or an address
	}
	again, err := buildText(".yaml", filled, fixtureEnv()...)
	if err != nil {
		t.Fatalf("%v of\n%s", err, text)
	}
	setZeros(cfg)
	hideSecrets(reflect.ValueOf(cfg))
	hideSecrets(reflect.ValueOf(again))
	cfg.Warnings, again.Warnings = nil, nil
	if !sameConfig(cfg, again) {
		t.Errorf("round trip gave\n%s\nof\n%s", effective(t, again), text)
	}
}

// setZeros sets the values that 0 stands for, as Effective shows them.
func setZeros(cfg *config.Config) {
	for name, llm := range cfg.LLMs {
		if llm != (config.LLM{}) {
			llm.Timeout = cmp.Or(llm.Timeout, cfg.Limits.SummariserTimeout)
			cfg.LLMs[name] = llm
		}
	}
	set := func(m *config.Memory, k *config.Knowledge) {
		if m.Set() {
			m.MaxPending, m.MaxAge = cmp.Or(m.MaxPending, config.DefaultPending), cmp.Or(m.MaxAge, config.DefaultPendingAge)
		}
		if k.Folder != "" {
			k.MaxTokens = cmp.Or(k.MaxTokens, config.DefaultKnowledge)
		}
	}
	if up := &cfg.Upstream; up.BaseURL == "" {
		address := func(p provider.Name) string { return cfg.UpstreamFor(config.Tenant{}, p).BaseURL }
		up.OpenAI.BaseURL, up.Anthropic.BaseURL = address(provider.OpenAI), address(provider.Anthropic)
		up.ChatGPT.BaseURL, up.Gemini.BaseURL = address(provider.ChatGPT), address(provider.Gemini)
	}
	set(&cfg.Memory, &cfg.Knowledge)
	for i := range cfg.Tenants {
		set(&cfg.Tenants[i].Memory, &cfg.Tenants[i].Knowledge)
	}
}

// TestEffectiveZeros: where 0 stands for a default, the default is shown.
func TestEffectiveZeros(t *testing.T) {
	cfg, err := buildText(".yaml", "llms: {a: {model: m}}\nknowledge: {folder: topics}\nmemory: {file: notes}\nlimits: {summariser_timeout: 40s}\n")
	if err != nil {
		t.Fatal(err)
	}
	text := string(effective(t, cfg))
	for _, line := range []string{"timeout: 40s\n", "max_tokens: 4000\n", "max_pending: 10000\n", "max_age: 72h0m0s\n"} {
		if !strings.Contains(text, "\n"+line) && !strings.Contains(text, "    "+line) && !strings.Contains(text, "\n  "+line) {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
	if text = string(effective(t, config.Default())); !strings.Contains(text, "max_pending: 0\n") {
		t.Errorf("without a destination, memory has no defaults:\n%s", text)
	}
	wantRoundTrip(t, cfg)
}

func effective(t testing.TB, cfg *config.Config) []byte {
	t.Helper()
	text, err := cfg.Effective()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hideSecrets(v reflect.Value) { fillSecrets(v, "hidden") }

// sameConfig compares configurations. A missing list or map equals an empty one.
func sameConfig(a, b *config.Config) bool {
	return reflect.DeepEqual(normal(reflect.ValueOf(*a)), normal(reflect.ValueOf(*b)))
}

func normal(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			fields[v.Type().Field(i).Name] = normal(v.Field(i))
		}
		return fields
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return normal(v.Elem())
	case reflect.Slice:
		items := []any{}
		for i := range v.Len() {
			items = append(items, normal(v.Index(i)))
		}
		return items
	case reflect.Map:
		entries := map[string]any{}
		for name, entry := range v.Seq2() {
			entries[name.String()] = normal(entry)
		}
		return entries
	default:
		return v.Interface()
	}
}

// Strings of every kind survive: those that YAML would read as something else, and those that look like ${NAME}.
func TestEffectiveRoundTripOfStrings(t *testing.T) {
	odd := rapid.SampledFrom([]string{
		"true", "null", "~", "123", "0x10", "1e3", ".nan", "-", "- a", "a: b", "a #b", "#", "&a", "*a", "!a", "|", ">", "%", "@", "`",
		"'", "\"", "\\", "{}", "[]", "${A}", "$${A}", "$", "yes", "<<", "=", "?", "a\nb", "a\tb", " a ", "\u2028", "\u0085", "é", "\U0001f600", "\x7f", "...", "---",
	})
	text := rapid.OneOf(odd, rapid.StringN(1, 20, -1))
	property.Check(t, func(rt *rapid.T) {
		cfg := config.Default()
		cfg.Store.Path = text.Draw(rt, "path")
		cfg.Store.Redis.Username = text.Draw(rt, "username")
		cfg.Session.BodyFields = []string{text.Draw(rt, "field")}
		heat := rapid.Float64Range(0, 2).Draw(rt, "temperature")
		cfg.LLMs = map[string]config.LLM{text.Draw(rt, "name"): {Model: text.Draw(rt, "model"), Temperature: &heat}}
		size := rapid.IntRange(6, 1000).Draw(rt, "max_size")
		cfg.Condenser.PerModel = map[string]config.Override{text.Draw(rt, "model name"): {MaxSize: &size}}
		cfg.Store.TTL = time.Duration(rapid.Int64Range(int64(time.Minute), int64(87600*time.Hour)).Draw(rt, "ttl"))
		cfg.Store.MaxSize = limit.Bytes(rapid.Int64Range(0, 1<<60).Draw(rt, "max_size"))
		cfg.Limits.MaxHeader = limit.Bytes(rapid.Int64Range(1, 1<<60).Draw(rt, "max_header"))
		if cfg.Validate() != nil {
			rt.Skip("the field is one of those that are refused")
		}
		wantRoundTrip(t, cfg)
	})
}

func TestEffectiveOfEmptyKey(t *testing.T) {
	cfg := config.Default()
	cfg.Tenants = []config.Tenant{{APIKeys: []config.APIKey{{}}}}
	if text := string(effective(t, cfg)); !strings.Contains(text, "- {}\n") {
		t.Errorf("got\n%s", text)
	}
}
