package config

import "testing"

func TestOwnVariantsOfDatedModel(t *testing.T) {
	got, known := Default().ModelFor("gpt-4o-2024-05-13")
	if want := (Model{128000, 4096, EncodingO200k, Price{5, 5, 5, 15}}); got != want || !known {
		t.Errorf("got %+v, %v", got, known)
	}
}

func TestUnknownModels(t *testing.T) {
	for _, name := range []string{
		"", "/", "-", "-latest", "gpt", "gpt-4o-audio-preview", "gpt-4o-2024-13", "gpt-4ox", "xgpt-4o", "gpt-4-1106-preview",
		"claude-2.1", "gpt-4o-12", "gpt-4o-", "gpt-4o/", "local", "mistral-large-2402", "@20250514", "-2024-08-06",
	} {
		if got, known := Default().ModelFor(name); got != FallbackModel() || known {
			t.Errorf("%q is %+v, %v", name, got, known)
		}
	}
}

// The table holds what Validate would accept of a configured model.
func TestBuiltinModelsAreValid(t *testing.T) {
	cfg := Default()
	for _, name := range []string{
		"gpt-4o", "gpt-4o-2024-05-13", "chatgpt-4o", "gpt-4o-mini", "gpt-4-1", "gpt-4-1-mini", "gpt-4-1-nano", "o1", "o1-mini", "o3",
		"o3-mini", "o4-mini", "gpt-5", "gpt-5-chat", "gpt-5-mini", "gpt-5-nano", "gpt-4-turbo", "gpt-4", "gpt-4-32k", "gpt-3-5-turbo",
		"claude-3-haiku", "claude-3-opus", "claude-3-5-haiku", "claude-3-5-sonnet", "claude-sonnet-4", "claude-opus-4",
		"claude-opus-4-5", "claude-haiku-4-5", "gemini-1-5-pro", "gemini-1-5-flash", "gemini-2-0-flash", "gemini-2-5-pro",
		"gemini-2-5-flash", "gemini-2-5-flash-lite", "deepseek-chat", "deepseek-reasoner", "qwen2-5-72b-instruct",
		"qwen3-coder-30b-a3b-instruct", "llama-3-1-8b-instruct", "llama-3-3-70b-versatile", "mistral-large-latest", "gpt-oss-20b",
	} {
		model := builtin(name)
		if model.ContextWindow == 0 {
			t.Errorf("%s is not in the table", name)
		}
		if p := model.Price; p != (Price{}) && !(p.CachedInput <= p.Input && p.Input <= p.CacheWrite && p.Input < p.Output) {
			t.Errorf("the price of %s is %+v", name, p)
		}
		cfg.Models[name] = model
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkModelFor(b *testing.B) {
	cfg := Default()
	b.ReportAllocs()
	for b.Loop() {
		cfg.ModelFor("openrouter/openai/gpt-4.1-mini-2025-04-14")
	}
}
