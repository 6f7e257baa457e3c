package tokenize

import "testing"

func TestForModel(t *testing.T) {
	f := func(model, encoding string, known bool) {
		t.Helper()
		if e, k := ForModel(model); e != encoding || k != known {
			t.Errorf("%q: %s, %t; want %s, %t", model, e, k, encoding, known)
		}
	}
	for _, model := range []string{
		"gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-4.1", "gpt-4.1-nano", "gpt-4.5-preview", "gpt-5", "gpt-5-mini",
		"gpt-5.1-codex", "gpt-oss-120b", "o1", "o1-preview", "o3", "o3-mini", "o4-mini", "codex-mini-latest", "openai/gpt-4o", "azure/gpt-4o",
		"openrouter/openai/gpt-5", "ft:gpt-4o-mini:team::id", "GPT-4o", " gpt-4o ", "openai/o3:high", "o200k_base",
	} {
		f(model, O200k, true)
	}
	for _, model := range []string{
		"gpt-4", "gpt-4-0613", "gpt-4-turbo", "gpt-4-32k", "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "gpt-35-turbo", "text-embedding-3-small",
		"text-embedding-3-large", "text-embedding-ada-002", "openai/gpt-4", "ft:gpt-3.5-turbo:team", "davinci-002", "cl100k_base",
	} {
		f(model, Cl100k, true)
	}
	for _, model := range []string{"", "/", "claude-sonnet-4", "anthropic/claude", "gpt-40", "gpt-4x", "o10", "o1x", "llama-3", "gemini-2.5-pro", "gpt", "openai/"} {
		f(model, FallbackEncoding, false)
	}
}

func TestEncoderFor(t *testing.T) {
	registry := New()
	for model, want := range map[string]struct {
		name  string
		known bool
	}{"openai/gpt-4": {Cl100k, true}, "someone's model": {FallbackEncoding, false}} {
		e, known, err := registry.EncoderFor(model)
		if err != nil || e.Name() != want.name || known != want.known {
			t.Errorf("%q: %v, %t, %v", model, e, known, err)
		}
	}
}
