package summariser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// TestBehindThePromptNothingBrokenIsTaken: an answer that is cut off, reports an error or has a call is not a summary.
func TestBehindThePromptNothingBrokenIsTaken(t *testing.T) {
	const half = `data: {"id":"x","choices":[{"index":0,"delta":{"content":"USER_CONTEXT: half of"}}]}` + "\n\n"
	chat := map[string]string{
		"an error within":             half + `data: {"error":{"message":"overloaded","type":"server_error"}}` + "\n\ndata: [DONE]\n\n",
		"as OpenRouter tells of one":  half + `data: {"id":"x","error":{"code":502,"message":"provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n",
		"no end":                      half + "data: [DONE]\n\n",
		"a call, whose end is 'stop'": half + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"run","arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	}
	for name, answer := range chat {
		for _, body := range []string{"", `{"messages":[]}`} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, answer)
			}))
			r := condense.Request{Endpoint: condense.Endpoint{BaseURL: s.URL, APIKey: "k"}, Model: "m", System: "s", User: "u", MaxOutput: 1000}
			if body != "" {
				r.Body = []byte(body)
			}
			got, err := Caller{}.Summarise(t.Context(), r)
			if err == nil && body != "" && got.Finish != "tool_calls" {
				t.Errorf("%s: accepted: %q, finish %q", name, got.Text, got.Finish)
			}
			s.Close()
		}
	}
	event := func(s string) string { return "data: " + s + "\n\n" }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.Join([]string{
			event(`{"type":"message_start","message":{"usage":{"input_tokens":10}}}`),
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"**I close the issue.**"}}`),
			event(`{"type":"content_block_start","index":1,"content_block":{"type":"mcp_tool_use","id":"m","name":"close_issue","input":{}}}`),
			event(`{"type":"content_block_start","index":2,"content_block":{"type":"mcp_tool_result","tool_use_id":"m","content":[]}}`),
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`),
			event(`{"type":"message_stop"}`),
		}, ""))
	}))
	defer s.Close()
	got, err := Caller{}.Summarise(t.Context(), condense.Request{
		Endpoint: condense.Endpoint{BaseURL: s.URL, APIKey: "k", Way: condense.Way{API: "messages"}}, Model: "m", Body: []byte(`{"messages":[]}`), MaxOutput: 1000})
	if err == nil && got.Finish == "stop" {
		t.Errorf("a call that the provider ran is ignored: %+v", got)
	}
}

// TestBehindThePromptTheCacheIsRead: cached tokens are read under each of the names that servers have for them.
func TestBehindThePromptTheCacheIsRead(t *testing.T) {
	for name, usage := range map[string]string{
		"OpenAI":   `"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":90}`,
		"DeepSeek": `"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10`,
		"Moonshot": `"prompt_tokens":100,"completion_tokens":5,"cached_tokens":90`,
	} {
		for kind, answer := range map[string]string{
			"text/event-stream": `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{` + usage + "}}\n\ndata: [DONE]\n\n",
			"application/json":  `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{` + usage + "}}",
		} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				fmt.Fprint(w, answer)
			}))
			got, err := Caller{}.Summarise(t.Context(), condense.Request{Endpoint: condense.Endpoint{BaseURL: s.URL, APIKey: "k"}, Model: "m", Body: []byte("{}")})
			if u := got.Usage; err != nil || u.Input != 100 || u.Cached != 90 || u.Output != 5 {
				t.Errorf("%s, %s: %+v, %v", name, kind, u, err)
			}
			s.Close()
		}
	}
}
