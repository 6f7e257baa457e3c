package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// file writes a text to a file in a folder of its own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// judges runs the judge command. An empty says means that it succeeds; otherwise its error has that text. It returns the output.
func judges(t *testing.T, says string, args ...string) string {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), append([]string{"judge"}, args...), &out)
	if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
		t.Errorf("%v: %v, want %q; it wrote %.2000s", args, err, says, out.String())
	}
	return out.String()
}

func TestJudgeCommand(t *testing.T) {
	quick.Skip(t)
	path := file(t, "run.json", `{"id": "small", "messages": [
		{"role": "user", "content": "count"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "wc", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "3"}], "final_response": {"role": "assistant", "content": "Three."}}`)
	for _, args := range [][]string{{path}, {"--stream", path}, {"--max-size", "10", filepath.Dir(path)}, {"--protocol", "messages", "--sealed", "thinking_blocks", "--sealed-steps", "some", path}} {
		if out := judges(t, "", args...); !strings.Contains(out, "small") || !strings.Contains(out, "1 runs") {
			t.Errorf("%v: it wrote %s", args, out)
		}
	}
	judges(t, "no recorded runs")
	judges(t, "-window and -again take a number from 0 on", "--window", "-5", path)
	judges(t, "-window and -again take a number from 0 on", "--again", "-1", path)
	judges(t, "-sealed-steps x", "--sealed-steps", "x", path)
	judges(t, "-sealed x", "--sealed", "x", path)
	judges(t, `unknown protocol "x"`, "--protocol", "x", path)
	judges(t, "max_size: is", "--max-size", "-1", path)
	judges(t, "max_tokens: is", "--max-tokens", "-1", path)
	judges(t, "missing.yaml", "--config", "missing.yaml", path)
}

// TestJudgeReportsViolations plays a run whose newest exchange has more events than the limit that the configuration promises.
func TestJudgeReportsViolations(t *testing.T) {
	var calls, results []any
	for i := range 20 {
		id := fmt.Sprintf("c%d", i)
		calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "wc", "arguments": "{}"}})
		results = append(results, map[string]string{"role": "tool", "tool_call_id": id, "content": "3"})
	}
	messages := append([]any{
		map[string]string{"role": "user", "content": "count"}, map[string]any{"role": "assistant", "content": nil, "tool_calls": calls},
	}, results...)
	text, err := json.Marshal(map[string]any{"id": "wide", "messages": messages, "final_response": map[string]string{"role": "assistant", "content": "Done."}})
	if err != nil {
		t.Fatal(err)
	}
	config := file(t, "small.yaml", "llms: {cheap: {model: gpt-4o-mini}}\ncondenser: {type: llm, llm_config: cheap, max_size: 10, keep_first: 1, min_tokens: 0}")
	out := judges(t, "1 violations", "--config", config, file(t, "wide.json", string(text)))
	if !strings.Contains(out, "VIOLATION wide: step 1: thresholds: forwarded 22 events, above 10") || !strings.Contains(out, "1 runs") {
		t.Errorf("it wrote %s", out)
	}
}

// TestJudgeUnderAnyConfiguration plays a run under condensers of many types, tenants and examples. A valid configuration is no reason for a violation.
func TestJudgeUnderAnyConfiguration(t *testing.T) {
	quick.Skip(t)
	text, err := json.Marshal(judge.Beginning(demo.Sample(), 50))
	if err != nil {
		t.Fatal(err)
	}
	sample := file(t, "sample.json", string(text))
	f := func(wrong, says, config string, args ...string) {
		t.Helper()
		if out := judges(t, wrong, slices.Concat([]string{"--config", config}, args, []string{sample})...); !strings.Contains(out, says) {
			t.Errorf("%s %v: it wrote %.2000s", config, args, out)
		}
	}
	const llms = `
llms: {summ: {model: claude-sonnet-4-5, api: messages, base_url: "https://api.anthropic.com/v1", api_key: k}, own: {model: gpt-4o}}
condenser: `
	for _, condenser := range []string{
		"{type: amortized, max_size: 20, min_tokens: 0}",
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: summ, deadline: 1ns}",
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: summ, recall: true, agent_request: true}",
		"{type: llm, llm_config: own, per_model: {gpt-4o: {max_size: 20, min_tokens: 0, background_at: 0.5}}}",
		"{type: structured, max_size: 20, min_tokens: 0, llm_config: summ}", "{type: structured, max_size: 20, min_tokens: 0}",
		"{type: llm_attention, max_size: 20, min_tokens: 0, llm_config: own}",
		"{type: recent, max_events: 20}", "{type: observation_masking, attention_window: 5}", "{type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 4000}, {type: llm, max_size: 20, min_tokens: 0}]}",
	} {
		f("", "1 runs", file(t, "condenser.yaml", llms+condenser))
	}
	tenants := file(t, "tenants.yaml", `
store: {encryption: {active: a, keys: {a: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}}}
limits: {tenant: {requests_per_minute: 1}}
tenants:
  a: {api_keys: [{sha256: `+strings.Repeat("ab", 32)+`}], condenser: {type: amortized, max_size: 20, min_tokens: 0}, notify: true}
  b: {api_keys: [{sha256: `+strings.Repeat("cd", 32)+`}], condenser: {type: noop}, memory: {webhook: {url: "http://127.0.0.1:1"}}}`)
	f("", "1 runs", tenants)
	f("", "1 runs", tenants, "--tenant", "a")
	f("", "0.0%", tenants, "--tenant", "b", "--model", "gpt-4o-mini")
	f(`no tenant "c"`, "", tenants, "--tenant", "c")
	f(`condenser.max_size: does not belong to type "noop"`, "", tenants, "--tenant", "b", "--max-size", "20")
	t.Setenv("LITELLM_TO_DEWPOINT_KEY", "a-key")
	t.Setenv("OPENAI_API_KEY", "another-key")
	f("", "1 runs", "../../examples/litellm/dewpoint.yaml")
	f("", "1 runs", "../../examples/ollama/dewpoint.yaml", "--model", "qwen3-coder:30b")
}
