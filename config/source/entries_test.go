package source

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func TestModelFor(t *testing.T) {
	cfg := mustBuild(t, ".yaml", `
models:
  my-model: {context_window: 1000, max_output: 100, price: {input: 3, output: 9}}
  small-model: {context_window: 8192}
  gpt-4o: {max_output: 1}
  gpt-4.1: {encoding: cl100k_base}
  Org/Tuned.Model: {context_window: 2000, max_output: 200}
  claude-sonnet-4: {price: {input: 6, cached_input: 1}}
  gemini-2.5-pro: {price: {input: 1.25}}
`)
	price4o := price(2.5, 1.25, 2.5, 10)
	for name, want := range map[string]model.Info{
		"my-model":                       info(1000, 100, model.EncodingO200k, price(3, 3, 3, 9)),
		"openai/my-model":                info(1000, 100, model.EncodingO200k, price(3, 3, 3, 9)),
		"small-model":                    info(8192, 2048, model.EncodingO200k, model.Price{}),
		"gpt-4.1":                        info(1047576, 32768, model.EncodingCL100k, price(2, 0.5, 2, 8)),
		"gpt-4o":                         info(128000, 1, model.EncodingO200k, price4o),
		"gpt-4o-2024-05-13":              info(128000, 1, model.EncodingO200k, price4o),
		"gemini-2.5-pro":                 info(1048576, 65536, model.EncodingO200k, price(1.25, 1.25, 1.25, 10)), // without a tier
		"tuned-model":                    info(2000, 200, model.EncodingO200k, model.Price{}),
		"claude-sonnet-4-20250514":       info(200000, 64000, model.EncodingO200k, price(6, 1, 6, 15)),
		"gpt-4o-mini":                    info(128000, 16384, model.EncodingO200k, price(0.15, 0.075, 0.15, 0.6)),
		"openrouter/openai/gpt-4.1-mini": info(1047576, 32768, model.EncodingO200k, price(0.4, 0.1, 0.4, 1.6)),
	} {
		if got, known := cfg.ModelFor(name); got != want || known == "" {
			t.Errorf("%s is %+v, %q; want %+v", name, got, known, want)
		}
	}
}

// TestModelNames: a model has one name, however clients spell it, since it labels metrics.
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
		if _, got := cfg.ModelFor(name); got != want {
			t.Errorf("%s is known as %q, want %q", name, got, want)
		}
	}
}

func info(window, output int, encoding string, p model.Price) model.Info {
	return model.Info{ContextWindow: window, MaxOutput: output, Encoding: encoding, Price: p}
}

func price(input, cached, write, output float64) model.Price {
	return model.Price{Input: input, CachedInput: cached, CacheWrite: write, Output: output}
}
