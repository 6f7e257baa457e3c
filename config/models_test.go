package config

import "testing"

func TestModelFor(t *testing.T) {
	cfg := mustBuild(t, ".yaml", `
models:
  my-model: {context_window: 1000, max_output: 100, price: {input: 3, output: 9}}
  gpt-4o: {max_output: 1}
  Org/Tuned.Model: {context_window: 2000, max_output: 200}
  claude-sonnet-4: {price: {input: 6, cached_input: 1}}
`)
	price4o := Price{2.5, 1.25, 2.5, 10}
	for name, want := range map[string]Model{
		"my-model":                           {1000, 100, EncodingO200k, Price{3, 3, 3, 9}},
		"openai/my-model":                    {1000, 100, EncodingO200k, Price{3, 3, 3, 9}},
		"gpt-4o":                             {128000, 1, EncodingO200k, price4o},
		"gpt-4o-2024-05-13":                  {128000, 1, EncodingO200k, price4o},
		"tuned-model":                        {2000, 200, EncodingO200k, Price{}},
		"claude-sonnet-4-20250514":           {200000, 64000, EncodingO200k, Price{6, 1, 6, 15}},
		"gpt-4o-mini":                        {128000, 16384, EncodingO200k, Price{0.15, 0.075, 0.15, 0.6}},
		"openrouter/openai/gpt-4.1-mini":     {1047576, 32768, EncodingO200k, Price{0.4, 0.1, 0.4, 1.6}},
		"gpt-4.1-2025-04-14":                 {1047576, 32768, EncodingO200k, Price{2, 0.5, 2, 8}},
		"GPT-5":                              {400000, 128000, EncodingO200k, Price{1.25, 0.125, 1.25, 10}},
		"gpt-5-2025-08-07":                   {400000, 128000, EncodingO200k, Price{1.25, 0.125, 1.25, 10}},
		"o4-mini":                            {200000, 100000, EncodingO200k, Price{1.1, 0.275, 1.1, 4.4}},
		"gpt-4-0613":                         {8192, 8192, EncodingCL100k, Price{30, 30, 30, 60}},
		"gpt-3.5-turbo-0125":                 {16385, 4096, EncodingCL100k, Price{0.5, 0.5, 0.5, 1.5}},
		"anthropic/claude-3.5-haiku":         {200000, 8192, EncodingO200k, Price{0.8, 0.08, 1, 4}},
		"claude-3-5-sonnet-latest":           {200000, 8192, EncodingO200k, Price{3, 0.3, 3.75, 15}},
		"vertex_ai/claude-opus-4-5@20251101": {200000, 64000, EncodingO200k, Price{5, 0.5, 6.25, 25}},
		"models/gemini-2.0-flash-001":        {1048576, 8192, EncodingO200k, Price{0.1, 0.025, 0.1, 0.4}},
		"deepseek/deepseek-chat":             {128000, 8192, EncodingO200k, Price{}},
		"meta-llama/Llama-3.3-70B-Instruct":  {131072, 4096, EncodingCL100k, Price{}},
	} {
		if got, known := cfg.ModelFor(name); got != want || !known {
			t.Errorf("%s is %+v, %v; want %+v", name, got, known, want)
		}
	}
}

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
	if err := cfg.Validate(nil); err != nil {
		t.Error(err)
	}
}

// TestModelNames holds that a model has one name, however clients spell it: metrics are labelled with it.
func TestModelNames(t *testing.T) {
	cfg := mustBuild(t, ".yaml", "models: {My.Model: {context_window: 1000, max_output: 100}}\n")
	for name, want := range map[string]string{
		"My.Model":                          "My.Model",
		"openrouter/org/my-model":           "My.Model",
		"gpt-4o":                            "gpt-4o",
		"openai/GPT-4o-2024-08-06":          "gpt-4o",
		"gpt-4o-2024-05-13":                 "gpt-4o-2024-05-13",
		"claude-3.5-sonnet-latest":          "claude-3-5-sonnet",
		"anything/else":                     "",
		"gpt-4o-my-very-own":                "",
		"a secret that a client sent gpt-4": "",
		"":                                  "",
	} {
		model, got := cfg.ModelNamed(name)
		if got != want {
			t.Errorf("%s is known as %q, want %q", name, got, want)
		}
		if same, known := cfg.ModelFor(name); same != model || known != (want != "") {
			t.Errorf("%s: ModelFor gives %+v, %v", name, same, known)
		}
	}
}

func BenchmarkModelFor(b *testing.B) {
	cfg := Default()
	b.ReportAllocs()
	for b.Loop() {
		cfg.ModelFor("openrouter/openai/gpt-4.1-mini-2025-04-14")
	}
}
