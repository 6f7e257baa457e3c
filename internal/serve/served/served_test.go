package served

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func windows(t *testing.T) *Windows {
	t.Helper()
	w := New(func(string) http.RoundTripper { return http.DefaultTransport })
	t.Cleanup(w.Close)
	return w
}

// ask asks a server that returns the given text for each path, and returns the window known afterwards.
func ask(t *testing.T, model string, answers map[string]string) int {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if got := r.Header.Get("Authorization"); got != "Bearer k" {
			t.Errorf("%s: authorised by %q", r.URL.Path, got)
		}
		if r.Method == http.MethodPost {
			var asked struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Model != model {
				t.Errorf("%s: asked for %q, %v", r.URL.Path, asked.Model, err)
			}
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	base := server.URL + "/v1"
	w := windows(t)
	w.Ask("team", base, "k", model)
	w.work.Wait()
	return w.Window(base, model)
}

func TestServersTell(t *testing.T) {
	f := func(name, model string, want int, answers map[string]string) {
		t.Helper()
		if got := ask(t, model, answers); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	f("vLLM", "Qwen/Qwen3-32B", 40960, map[string]string{
		"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-32B","object":"model","owned_by":"vllm","max_model_len":40960}]}`,
	})
	f("OpenRouter, whose first provider serves less", "z-ai/glm-4.6", 131072, map[string]string{
		"/v1/models": `{"data":[{"id":"a/b","context_length":1},{"id":"z-ai/glm-4.6","context_length":202752,"top_provider":{"context_length":131072}}]}`,
	})
	f("llama.cpp", "m", 8192, map[string]string{
		"/v1/models": `{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
		"/props":     `{"default_generation_settings":{"n_ctx":8192},"total_slots":4}`,
	})
	f("LM Studio", "qwen2.5-7b-instruct", 4096, map[string]string{
		"/v1/models":     `{"data":[{"id":"qwen2.5-7b-instruct","object":"model","owned_by":"organization_owner"}]}`,
		"/api/v0/models": `{"data":[{"id":"qwen2.5-7b-instruct","state":"loaded","max_context_length":32768,"loaded_context_length":4096}]}`,
	})
	f("Ollama, loaded", "llama3.2", 16384, map[string]string{
		"/v1/models": `{"data":[{"id":"llama3.2:latest","owned_by":"library"}]}`,
		"/api/ps":    `{"models":[{"name":"llama3.2:latest","context_length":16384}]}`,
	})
	f("Ollama, by its model file", "gpt-oss:20b", 8192, map[string]string{
		"/v1/models": `{"data":[{"id":"gpt-oss:20b","owned_by":"library"}]}`,
		"/api/show":  `{"parameters":"temperature 1\nnum_ctx                        8192","model_info":{"gptoss.context_length":131072}}`,
	})
	f("LiteLLM", "fast", 200000, map[string]string{
		"/v1/models":     `{"data":[{"id":"fast","owned_by":"openai"}]}`,
		"/v1/model/info": `{"data":[{"model_name":"fast","model_info":{"max_input_tokens":200000,"max_tokens":8192}}]}`,
	})
	f("LiteLLM, with a figure that cannot be read for another model", "fast", 200000, map[string]string{
		"/v1/models": `{"data":[{"id":"fast","owned_by":"openai"}]}`,
		"/v1/model/info": `{"data":[{"model_name":"slow","model_info":{"max_input_tokens":1e6}},` +
			`{"model_name":"fast","model_info":{"max_input_tokens":200000}}]}`,
	})
	f("OpenAI, which tells nothing", "gpt-5", 0, map[string]string{"/v1/models": `{"data":[{"id":"gpt-5","object":"model"}]}`})
	f("a model that is not in the list", "m", 0, map[string]string{
		"/v1/models": `{"data":[{"id":"n","owned_by":"llamacpp"}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`,
	})
	f("a server without a list", "m", 0, map[string]string{"/props": `{"default_generation_settings":{"n_ctx":8192}}`})
	f("nonsense", "m", 0, map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":"long"}]}`})
	f("negative", "m", 0, map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":-1}]}`})
}

// TestAskedOnce: a server is asked once, whatever it answers, and a redirect does not send the client's key elsewhere.
func TestAskedOnce(t *testing.T) {
	var asked, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer server.Close()
	base := server.URL + "/v1"
	w := windows(t)
	for range 3 {
		w.Ask("team", base, "k", "m")
		w.work.Wait()
	}
	if asked.Load() != 1 || elsewhere.Load() != 0 || w.Window(base, "m") != 0 {
		t.Errorf("asked %d times, %d elsewhere, window %d", asked.Load(), elsewhere.Load(), w.Window(base, "m"))
	}
}
