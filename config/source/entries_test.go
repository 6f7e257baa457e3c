package source

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

func TestModelFor(t *testing.T) {
	cfg := mustBuild(t, ".yaml", `
models:
  my-model: {context_window: 1000, max_output: 100, price: {input: 3, output: 9}}
  gpt-4o: {max_output: 1}
  Org/Tuned.Model: {context_window: 2000, max_output: 200}
  claude-sonnet-4: {price: {input: 6, cached_input: 1}}
`)
	price4o := price(2.5, 1.25, 2.5, 10)
	for name, want := range map[string]config.Model{
		"my-model":                           model(1000, 100, config.EncodingO200k, price(3, 3, 3, 9)),
		"openai/my-model":                    model(1000, 100, config.EncodingO200k, price(3, 3, 3, 9)),
		"gpt-4o":                             model(128000, 1, config.EncodingO200k, price4o),
		"gpt-4o-2024-05-13":                  model(128000, 1, config.EncodingO200k, price4o),
		"tuned-model":                        model(2000, 200, config.EncodingO200k, config.Price{}),
		"claude-sonnet-4-20250514":           model(200000, 64000, config.EncodingO200k, price(6, 1, 6, 15)),
		"gpt-4o-mini":                        model(128000, 16384, config.EncodingO200k, price(0.15, 0.075, 0.15, 0.6)),
		"openrouter/openai/gpt-4.1-mini":     model(1047576, 32768, config.EncodingO200k, price(0.4, 0.1, 0.4, 1.6)),
		"gpt-4.1-2025-04-14":                 model(1047576, 32768, config.EncodingO200k, price(2, 0.5, 2, 8)),
		"GPT-5":                              model(400000, 128000, config.EncodingO200k, price(1.25, 0.125, 1.25, 10)),
		"gpt-5-2025-08-07":                   model(400000, 128000, config.EncodingO200k, price(1.25, 0.125, 1.25, 10)),
		"o4-mini":                            model(200000, 100000, config.EncodingO200k, price(1.1, 0.275, 1.1, 4.4)),
		"gpt-4-0613":                         model(8192, 8192, config.EncodingCL100k, price(30, 30, 30, 60)),
		"gpt-3.5-turbo-0125":                 model(16385, 4096, config.EncodingCL100k, price(0.5, 0.5, 0.5, 1.5)),
		"anthropic/claude-3.5-haiku":         model(200000, 8192, config.EncodingO200k, price(0.8, 0.08, 1, 4)),
		"claude-3-5-sonnet-latest":           model(200000, 8192, config.EncodingO200k, price(3, 0.3, 3.75, 15)),
		"vertex_ai/claude-opus-4-5@20251101": model(200000, 64000, config.EncodingO200k, price(5, 0.5, 6.25, 25)),
		"models/gemini-2.0-flash-001":        model(1048576, 8192, config.EncodingO200k, price(0.1, 0.025, 0.1, 0.4)),
		"deepseek/deepseek-chat":             model(128000, 8192, config.EncodingO200k, config.Price{}),
		"meta-llama/Llama-3.3-70B-Instruct":  model(131072, 4096, config.EncodingCL100k, config.Price{}),
	} {
		if got, known := cfg.ModelFor(name); got != want || !known {
			t.Errorf("%s is %+v, %v; want %+v", name, got, known, want)
		}
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

func model(window, output int, encoding string, p config.Price) config.Model {
	return config.Model{ContextWindow: window, MaxOutput: output, Encoding: encoding, Price: p}
}

func price(input, cached, write, output float64) config.Price {
	return config.Price{Input: input, CachedInput: cached, CacheWrite: write, Output: output}
}
