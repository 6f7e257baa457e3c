package summariser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
)

// TestRefusedParameters: what a refusal objects to is left out or replaced, in each protocol, and the next call is accepted at once.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	cold := float32(0.5)
	has := func(names ...string) func(map[string]any, string) bool {
		return func(body map[string]any, _ string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return body[name] != nil })
		}
	}
	role := func(names ...string) func(map[string]any, string) bool {
		return func(_ map[string]any, body string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(body, `"role":"`+name+`"`) })
		}
	}
	above := func(limit float64, name string) func(map[string]any, string) bool {
		return func(body map[string]any, _ string) bool { n, _ := body[name].(float64); return n > limit }
	}
	for name, c := range map[string]struct {
		api     string
		refusal string
		bad     func(members map[string]any, body string) bool
		calls   int
		accepts string // in the accepted body
	}{
		"max_tokens":           {"chat", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", has("max_tokens"), 2, `"max_completion_tokens":1000`},
		"any limit":            {"chat", "max_tokens and max_completion_tokens are not permitted", has("max_tokens", "max_completion_tokens"), 3, `"messages"`},
		"a lower limit":        {"chat", "max_tokens is too large: 1000. This model supports at most 512.", above(512, "max_tokens"), 2, `"max_tokens":512`},
		"temperature":          {"chat", "Unsupported value: 'temperature' does not support 0.5 with this model.", has("temperature"), 2, `"messages"`},
		"stream_options":       {"chat", "unknown field stream_options", has("stream_options"), 2, `"messages"`},
		"stream":               {"chat", "Streaming is not supported", has("stream"), 2, `"messages"`},
		"tool_choice":          {"chat", "tool_choice must be auto", has("tool_choice"), 2, `"tools"`},
		"tools":                {"chat", "This model does not support tools", has("tools", "tool_choice"), 2, `nothing but JSON of this schema`},
		"response_format":      {"chat", "response_format json_schema is unavailable", has("response_format"), 2, `nothing but JSON of this schema`},
		"system":               {"chat", "System role not supported", role("system", "developer"), 2, `summarise\n\nevents`},
		"system in a template": {"chat", "Conversation roles must alternate user/assistant/user/assistant/...", role("system", "developer"), 2, `summarise\n\nevents`},
		"developer":            {"chat", "'messages[0].role' must be 'developer'", role("system"), 2, `"role":"developer"`},
		"several":              {"chat", "max_tokens, temperature, stream_options: extra inputs", has("max_tokens", "max_completion_tokens"), 3, `"temperature"`},
		"temperature of items": {"responses", "Unsupported parameter: 'temperature'", has("temperature"), 2, `"instructions"`},
		"store":                {"responses", "store is not supported", has("store"), 2, `"instructions"`},
		"instructions":         {"responses", "instructions are not supported", has("instructions"), 2, `summarise\n\nevents`},
		"text.format":          {"responses", "Invalid parameter: text.format", has("text"), 2, `nothing but JSON of this schema`},
		"temperature of blocks": {
			"messages", "`temperature` is deprecated for this model.", has("temperature"), 2, `"system"`,
		},
		"a lower limit of blocks": {"messages", "max_tokens: 1000 > 512, which is the maximum allowed number of output tokens", above(512, "max_tokens"), 2, `"max_tokens":512`},
		"system of blocks":        {"messages", "system: text prompts are not supported", has("system"), 2, `summarise\n\nevents`},
		"tools of blocks":         {"messages", "tools: not supported", has("tools"), 2, `nothing but JSON of this schema`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, accepted := 0, ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				var body map[string]any
				if err := json.Unmarshal(raw, &body); err != nil {
					t.Error(err)
				}
				calls++
				if c.bad(body, string(raw)) {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": c.refusal}})
					return
				}
				accepted = string(raw)
				w.Header().Set("Content-Type", "application/json")
				switch c.api {
				case "responses":
					io.WriteString(w, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"STATE: fine"}]}]}`)
				case "messages":
					io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"STATE: fine"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
				default:
					io.WriteString(w, fine)
				}
			}))
			defer server.Close()
			r := request(server.URL, "prod-small")
			r.Endpoint.Way.API, r.MaxOutput = c.api, 1000
			switch {
			case strings.Contains(name, "tool"):
				r.Function = &condense.Schema{Name: "note", JSON: []byte(`{"type":"object"}`)}
			case strings.Contains(name, "format"):
				r.Format = &condense.Schema{Name: "note", JSON: []byte(`{"type":"object"}`)}
			}
			caller := summariser.Caller{Lacks: summariser.NewLacks(), Temperature: &cold}
			for n := range 2 {
				calls = 0
				reply, err := caller.Summarise(t.Context(), r)
				if want := []int{c.calls, 1}[n]; err != nil || reply.Text != "STATE: fine" || calls != want {
					t.Errorf("call %d: %+v, %v after %d calls, want %d", n, reply, err, calls, want)
				}
				if !strings.Contains(accepted, c.accepts) {
					t.Errorf("accepted %s", accepted)
				}
			}
			r.Model, calls = "prod-large", 0 // another model of the server is asked as usual
			if _, err := caller.Summarise(t.Context(), r); err != nil || calls != c.calls {
				t.Errorf("another model: %v after %d calls", err, calls)
			}
		})
	}
}

// TestRefusalsEnd: a server that refuses whatever it is sent is called a bounded number of times, and nothing is remembered of it.
func TestRefusalsEnd(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		delete(body, "model")
		calls++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"unsupported: %s, system role"}}`, strings.Join(slices.Sorted(maps.Keys(body)), ", "))
	}))
	defer server.Close()
	cold := float32(0)
	caller := summariser.Caller{Lacks: summariser.NewLacks(), Temperature: &cold}
	asked := request(server.URL, "gpt-5-mini")
	asked.Function = &condense.Schema{Name: "note", JSON: []byte(`{}`)}
	asked.Format = asked.Function
	var each []int
	for range 2 {
		calls = 0
		if _, err := caller.Summarise(t.Context(), asked); err == nil {
			t.Error("no error")
		}
		each = append(each, calls)
	}
	if !slices.Equal(each, []int{7, 7}) {
		t.Errorf("%v calls", each)
	}
}

// TestClientsLimit: the request's own model is asked with the parameter by which its client limits answers.
func TestClientsLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max_tokens", "max_completion_tokens"} {
		var body map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&body)
			io.WriteString(w, fine)
		}))
		r := request(server.URL, "prod-small")
		r.Endpoint.Way.Limit = limit
		if _, err := (summariser.Caller{}).Summarise(t.Context(), r); err != nil || body[limit] == nil {
			t.Errorf("%s: sent %v, %v", limit, body, err)
		}
		server.Close()
	}
}
