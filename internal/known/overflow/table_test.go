package overflow

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type telling struct {
	file   string
	status int
	want   Overflow
}

// told lists what each body in testdata means, with status 400 if none is given. The words are as the servers
// write them (see rows), in the envelope that each uses. Identifiers are left out, and where a source has only the
// words, or a code is tested alone, the rest is made up.
var told = []telling{
	{"openai_functions_completion.json", 0, Overflow{Limit: 8192, Prompt: 5359, Output: 4096}},
	{"openai_completion.json", 0, Overflow{Limit: 4097, Prompt: 3703, Output: 500}},
	{"openai_completion_huge.json", 0, Overflow{Limit: 8192, Prompt: 64, Output: 8192, ByOutput: true}},
	{"openai_nospace.json", 0, Overflow{Limit: 4096, Prompt: 3104, Output: 1000}},
	{"openai_prompt.json", 0, Overflow{Limit: 4097, Prompt: 1044, Output: 3072, ByOutput: true}},
	{"openai_messages.json", 0, Overflow{Limit: 128000, Prompt: 149767}},
	{"openai_functions.json", 0, Overflow{Limit: 128000, Prompt: 202868}},
	{"openai_configured_limit.json", 0, Overflow{Limit: 272000, Prompt: 289650}},
	{"openai_exceeded.json", 0, Overflow{}},
	{"openai_responses_event.json", 200, Overflow{}},
	{"openai_responses_failed.json", 200, Overflow{}},
	{"azure_completion.json", 0, Overflow{Limit: 32768, Prompt: 9969, Output: 26000, ByOutput: true}},
	{"azure_configured_limit.json", 0, Overflow{Limit: 272000, Prompt: 509178}},
	{"deepseek_completion.json", 0, Overflow{Limit: 65536, Prompt: 68718, Output: 4096}},
	{"deepseek_no_completion.json", 0, Overflow{Limit: 131072, Prompt: 194606}},

	{"vllm_flat.json", 0, Overflow{Limit: 16384, Prompt: 9591, Output: 10000}},
	{"vllm_messages.json", 0, Overflow{Limit: 8192, Prompt: 9120}},
	{"vllm_at_least.json", 0, Overflow{Limit: 131072, Prompt: 126977, AtLeast: true, Output: 4096}},
	{"vllm_at_least_by_output.json", 0, Overflow{Limit: 131072, Prompt: 3073, AtLeast: true, Output: 128000, ByOutput: true}},
	{"vllm_at_least_input.json", 0, Overflow{Limit: 262144, Prompt: 262145, AtLeast: true}},
	{"vllm_exact.json", 0, Overflow{Limit: 32768, Prompt: 40100, Output: 1024}},
	{"vllm_characters.json", 0, Overflow{Limit: 32768, Prompt: 31744, AtLeast: true, Output: 1024}},
	{"vllm_max_model_len.json", 0, Overflow{Limit: 131072, Output: 200000, ByOutput: true}},
	{"vllm_max_model_len_nospace.json", 0, Overflow{Limit: 131072, Output: 200000, ByOutput: true}},
	{"vllm_passed.json", 0, Overflow{Limit: 32768, Prompt: 28673, AtLeast: true, Output: 4096}},
	{"vllm_passed_short.json", 0, Overflow{Limit: 32768, Prompt: 102420, AtLeast: true}},
	{"vllm_passed_characters.json", 0, Overflow{Limit: 32768, Prompt: 31744, AtLeast: true, Output: 1024}},
	{"vllm_too_large.json", 0, Overflow{Limit: 131072, Prompt: 86565, Output: 47186}},
	{"vllm_too_large_by_output.json", 0, Overflow{Limit: 10240, Prompt: 423, Output: 32000, ByOutput: true}},
	{"vllm_request_has.json", 0, Overflow{Limit: 262144, Prompt: 1000010}},
	{"vllm_decoder.json", 0, Overflow{Limit: 16384, Prompt: 21535}},
	{"vllm_total_length.json", 0, Overflow{Limit: 4096, Prompt: 25938}},
	{"vllm_got_negative.json", 0, Overflow{}},
	{"xinference_decoder.json", 500, Overflow{Limit: 16384, Prompt: 17772}},
	{"fastchat_flat.json", 0, Overflow{Limit: 2048, Prompt: 3503}},
	{"longbench_total.json", 0, Overflow{Limit: 131072}},

	{"sglang_input.json", 0, Overflow{Limit: 40960, Prompt: 61709}},
	{"sglang_total.json", 0, Overflow{Limit: 64000, Prompt: 7897, Output: 64000, ByOutput: true}},
	{"sglang_total_grown.json", 0, Overflow{Limit: 65536, Prompt: 63904, Output: 4096}},
	{"sglang_memory.json", 0, Overflow{Limit: 59862, Prompt: 160062}},

	{"llamacpp_numbers.json", 0, Overflow{Limit: 131072, Prompt: 131168}},
	{"llamacpp_2025.json", 200, Overflow{Limit: 8192, Prompt: 14429}},
	{"llamacpp_plain.json", 0, Overflow{}},
	{"llamacpp_type.json", 500, Overflow{Limit: 256, Prompt: 1407}},
	{"llamacpppython.json", 500, Overflow{Limit: 2048, Prompt: 2285}},
	{"lmstudio_event.sse", 200, Overflow{Limit: 30000, Prompt: 31430}},
	{"lmstudio_keep_first.json", 0, Overflow{Limit: 8192, Prompt: 15857}},
	{"lmstudio_n_keep.json", 0, Overflow{Limit: 4096, Prompt: 13055}},
	{"lmstudio_n_keep_spaced.json", 0, Overflow{Limit: 4096, Prompt: 13055}},
	{"lmstudio_truncate.json", 0, Overflow{Limit: 7424, Prompt: 15028}},
	{"lmstudio_initial_prompt.json", 0, Overflow{}},
	{"lmstudio_reached.json", 0, Overflow{Limit: 4096}},
	{"lmstudio_2023.json", 0, Overflow{Limit: 1500, Prompt: 6491}},
	{"lmstudio_mlx.json", 0, Overflow{}},
	{"ollama_cloud.json", 0, Overflow{Limit: 262143, Prompt: 798932}},
	{"ollama_exceeded_by.json", 0, Overflow{}},
	{"ollama_exceeded.json", 0, Overflow{}},
	{"ollama_input_length.json", 500, Overflow{}},
	{"ollama_input_maximum.json", 0, Overflow{}},
	{"fireworks.json", 0, Overflow{Limit: 32767, Prompt: 33139}},

	{"openrouter_three_parts.json", 0, Overflow{Limit: 262000, Prompt: 1390, Output: 262000, ByOutput: true}},
	{"openrouter_two_parts.json", 0, Overflow{Limit: 131072, Prompt: 7884, Output: 131072, ByOutput: true}},
	{"openrouter_grown.json", 0, Overflow{Limit: 32768, Prompt: 56811, Output: 16}},
	{"openrouter_tool_input.json", 0, Overflow{Limit: 200000, Prompt: 201326}},
	{"openrouter_text_only.json", 0, Overflow{Limit: 16384, Prompt: 94307}},
	{"openrouter_raw_nvidia.json", 0, Overflow{Limit: 262144, Prompt: 262897}},
	{"openrouter_raw_venice.json", 0, Overflow{Limit: 131072, Prompt: 86565, Output: 47186}},
	{"openrouter_raw_vertex.json", 413, Overflow{}},
	{"openrouter_raw_object.json", 0, Overflow{Limit: 8192, Prompt: 54, Output: 8192, ByOutput: true}},
	{"openrouter_event.sse", 200, Overflow{Limit: 32768, Prompt: 42832}},
	{"openrouter_poolside.json", 0, Overflow{Limit: 131040, Prompt: 131393}},
	{"proxy_input_length.json", 0, Overflow{Limit: 262144, Prompt: 265330}},
	{"ds4.json", 0, Overflow{Limit: 131072, Prompt: 300000}},
	{"litellm_anthropic.json", 0, Overflow{Limit: 200000, Prompt: 210543}},
	{"litellm_anthropic_bytes.json", 0, Overflow{Limit: 200000, Prompt: 179413, Output: 32768}},
	{"litellm_python_repr.json", 0, Overflow{Limit: 8192, Prompt: 10020}},
	{"litellm_unknown.json", 0, Overflow{}},
	{"litellm_azure.json", 0, Overflow{Limit: 272000}},
	{"litellm_sglang_short.json", 503, Overflow{Limit: 131072}},

	{"anthropic_native.json", 0, Overflow{Limit: 200000, Prompt: 219898}},
	{"anthropic_compat.json", 413, Overflow{Limit: 200000, Prompt: 205000}},
	{"anthropic_max_tokens.json", 0, Overflow{Limit: 200000, Prompt: 199759, Output: 8192}},
	{"anthropic_max_tokens_half.json", 0, Overflow{Limit: 204648, Prompt: 90402, Output: 116650, ByOutput: true}},
	{"gemini_compat.json", 0, Overflow{Limit: 1048576, Prompt: 1200293}},
	{"gemini_nested.json", 0, Overflow{Limit: 1048576, Prompt: 3475108}},
	{"gemini_no_count.json", 0, Overflow{Limit: 1048576}},
	{"gemini_no_numbers.json", 0, Overflow{}},
	{"mistral.json", 0, Overflow{Limit: 131072, Prompt: 170397}},
	{"groq.json", 413, Overflow{}},
	{"groq_code_only.json", 0, Overflow{}},
	{"cerebras.json", 0, Overflow{Limit: 65536}},
	{"xai.json", 0, Overflow{Limit: 131072, Prompt: 136973}},
	{"moonshot.json", 0, Overflow{Limit: 262144}},
	{"dashscope.json", 0, Overflow{Limit: 983616}},
	{"zhipu.json", 0, Overflow{}},
	{"minimax.json", 0, Overflow{}},
	{"volcengine.json", 0, Overflow{}},
	{"volcengine_code.json", 0, Overflow{}},
	{"siliconflow.json", 0, Overflow{Limit: 65536, Prompt: 68957}},
	{"siliconflow_total.json", 0, Overflow{Limit: 131072}},
	{"together_new.json", 0, Overflow{Limit: 131072, Prompt: 170071}},
	{"together_tgi.json", 0, Overflow{Limit: 2048, Prompt: 2019, Output: 30}},
	{"tgi_total.json", 422, Overflow{Limit: 2048, Prompt: 244, Output: 2000, ByOutput: true}},
	{"tgi_inputs.json", 422, Overflow{Limit: 1024, Prompt: 1168}},
	{"cohere_total.json", 0, Overflow{Limit: 2048}},
	{"cohere_limit.json", 0, Overflow{Limit: 4081}},
	{"cohere_cannot.json", 0, Overflow{Limit: 4081, Prompt: 4292}},
	{"bedrock_numbers.json", 0, Overflow{Limit: 200000, Prompt: 207848}},
	{"bedrock_input.json", 0, Overflow{}},
	{"bedrock_nova.json", 200, Overflow{}},
	{"bedrock_llama.json", 200, Overflow{Limit: 131072}},
	{"copilot.json", 0, Overflow{Limit: 128000, Prompt: 1236658}},
	{"copilot_code.json", 0, Overflow{}},
	{"zai_code.json", 0, Overflow{}},
	{"plain.txt", 0, Overflow{Limit: 8192}},
}

func TestRecognise(t *testing.T) {
	for _, c := range told {
		t.Run(c.file, func(t *testing.T) {
			got, ok := Recognise(statusOf(c.status), typeOf(c.file), load(t, c.file))
			if !ok || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, ok, c.want)
			}
		})
	}
}

// A rate limit, an account, a parameter, an image, a failure, a page, a completion about overflows: none is an overflow,
// whatever the status.
func TestRecogniseNothingElse(t *testing.T) {
	for _, path := range glob(t, "testdata/not/*") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			body := load(t, strings.TrimPrefix(path, "testdata/"))
			for _, status := range []int{400, 413, 422, 500, 503} {
				if filepath.Base(path) == "completion.json" || strings.HasSuffix(path, ".sse") {
					status = 200
				}
				if got, ok := Recognise(status, typeOf(path), body); ok {
					t.Errorf("status %d: recognised as %+v", status, got)
				}
			}
			if got, ok := Recognise(200, "", body); ok {
				t.Errorf("with success: recognised as %+v", got)
			}
		})
	}
}

// Each body has an expectation, and each row decides for at least one body: a row that no body needs is a guess.
func TestTableIsSeen(t *testing.T) {
	for _, path := range glob(t, "testdata/*.*") {
		if !slices.ContainsFunc(told, func(c telling) bool { return c.file == filepath.Base(path) }) {
			t.Errorf("%s is not in the table of the test", path)
		}
	}
	used := make([]bool, len(rows()))
	for _, c := range told {
		r := read(payload(load(t, c.file)))
		for i := range rows() {
			if _, ok := r.find(rows()[i : i+1]); ok {
				used[i] = true
				break
			}
		}
	}
	for i, row := range rows() {
		if !used[i] {
			t.Errorf("no body is recognised by %q", row.words)
		}
	}
}

// The words of each row are folded, start with enough plain text to be rare, and are cheap and unambiguous to match.
func TestTableIsFolded(t *testing.T) {
	afterNumber := regexp.MustCompile(`[}*],?[0-9]`)
	words := slices.Concat(limitErrors, echoes)
	for _, row := range slices.Concat(rows(), alternation()) {
		if strings.IndexAny(row.words+"*", "{*") < len("_tokens=") || strings.Count(row.words, "*") > 1 {
			t.Errorf("%q is too vague", row.words)
		}
		if afterNumber.MatchString(row.words) {
			t.Errorf("%q: a number or a star is followed by a digit, or by a comma and a digit", row.words)
		}
		words = append(words, row.words, row.but)
	}
	for _, w := range words {
		if fold(w) != w {
			t.Errorf("%q is not folded", w)
		}
	}
}

func statusOf(status int) int {
	if status == 0 {
		return 400
	}
	return status
}

func typeOf(file string) string {
	switch filepath.Ext(file) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".sse":
		return "text/event-stream"
	case ".txt":
		return "text/plain"
	default:
		return "application/json"
	}
}

func load(t testing.TB, file string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	return paths
}
