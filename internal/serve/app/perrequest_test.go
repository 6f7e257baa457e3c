package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// input returns a conversation of n messages of 100 tokens each, for a model with a large window.
func input(n int) condense.Input {
	messages := []session.Message{condensetest.Message(session.Content{Role: "system", Text: "You help."})}
	for i := len(messages); i < n; i++ {
		role := []string{"assistant", "user"}[i%2]
		messages = append(messages, condensetest.Message(session.Content{Role: role, Text: fmt.Sprint("message ", i)}))
	}
	view := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	return condense.Input{
		View: &view, Total: 100 * n, Window: 1e6, Model: "gpt-4.1", Codec: condensetest.Codec{},
		Measure: each(100),
		Count:   func(text string) int { return len(text) / 4 },
	}
}

// each returns a measure that counts the same tokens for every item.
func each(tokens int) func([]session.Item) []int {
	return func(items []session.Item) []int { return slices.Repeat([]int{tokens}, len(items)) }
}

func TestMargin(t *testing.T) {
	for window, want := range map[int]int{
		0: 0, 100: 25, 1000: 250, 1024: 256, 4096: 256, 12800: 256, 12850: 257, 128000: 2560, 1000000: 20000,
	} {
		if got := margin(window); got != want {
			t.Errorf("of %d: %d, want %d", window, got, want)
		}
	}
}

// TestMarginStaysFree checks that a condensation is due one token above the window less the answer and the margin.
func TestMarginStaysFree(t *testing.T) {
	for kind := range stages() {
		if e, _ := catalogue.Find(kind); !e.Rolling() || kind == "custom" {
			continue
		}
		c := build(t, "condenser: {type: "+kind+", trigger: limits, max_tokens: 1}")
		for _, tt := range []struct{ window, reserved, limit int }{
			{128000, 16000, 128000 - 16000 - 2560}, {128000, 0, 128000 - 2560}, {8192, 1000, 8192 - 1000 - 256},
		} {
			in := input(40)
			in.Window, in.Reserved, in.Total = tt.window, tt.reserved, tt.limit
			in.Measure, in.Fixed = each(tt.limit/40), tt.limit%40
			if got := reason(c.Condense(in)); got != "" {
				t.Errorf("%s %+v: due for %q", kind, tt, got)
			}
			in.Total++
			in.Fixed++
			if got := reason(c.Condense(in)); got != session.ReasonWindow {
				t.Errorf("%s %+v: one more token is due for %q", kind, tt, got)
			}
		}
	}
}

func TestRoom(t *testing.T) {
	cfg := config.Default()
	cfg.Models = map[string]model.Info{
		"small": {ContextWindow: 6000, MaxOutput: 3000}, "terse": {ContextWindow: 64000, MaxOutput: 2000},
	}
	for _, tt := range []struct {
		llm          config.LLM
		request      string
		window       int // of the request's model, as currently known
		want, output int
	}{
		{config.LLM{}, "gpt-4.1", 1047576, 1047576, 4096},
		{config.LLM{}, "gpt-4.1", 16000, 16000, 4000},
		{config.LLM{}, "small", 6000, 6000, 1500},
		{config.LLM{}, "terse", 64000, 64000, 2000},
		{config.LLM{}, "nobody-knows", 128000, 128000, 4096},
		{config.LLM{Model: "terse"}, "gpt-4.1", 8000, 64000, 2000},
		{config.LLM{Model: "terse", MaxOutput: 900}, "gpt-4.1", 8000, 64000, 900},
		{config.LLM{Model: "terse"}, "terse", 32000, 32000, 2000},
		{config.LLM{Model: "terse"}, "terse", 0, 64000, 2000},
	} {
		in := condense.Input{Model: tt.request, Window: tt.window}
		if window, output := (builder{config: cfg}).room(tt.llm, in); window != tt.want || output != tt.output {
			t.Errorf("%+v: got %d, %d", tt, window, output)
		}
	}
}

// answering is a model server that keeps its last request.
type answering struct {
	message string // of its answer, as JSON
	url     string
	header  http.Header
	body    string
}

// RoundTrip implements http.RoundTripper.
func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.url, a.header, a.body = r.URL.String(), r.Header, string(body)
	text := `{"choices":[{"index":0,"finish_reason":"stop","message":` + a.message + `}]}`
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(text)), Header: http.Header{}}, nil
}

// TestCalls checks how llm_config shapes the calls of each condenser type.
func TestCalls(t *testing.T) {
	const call = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"create_state_summary",` +
		`"arguments":"{\"user_context\":\"help\"}"}}]}`
	for _, tt := range []struct{ kind, keys, message, shape string }{
		{"llm", "focus: research, ", `{"role":"assistant","content":"DISCUSSED: they talked."}`, `SOURCES: `},
		{"structured_summary", "", call, `"tool_choice"`},
		{"llm_attention", "", `{"role":"assistant","content":"{\"ids\":[3]}"}`, `"json_schema"`},
	} {
		server := &answering{message: tt.message}
		cfg := load(t, ".yaml", `
llms:
  cheap: {model: tiny, base_url: "http://cheap/v1", api_key: cheap-key, temperature: 0.5}
models: {tiny: {context_window: 8000, max_output: 1000}}
condenser: {type: `+tt.kind+`, `+tt.keys+`llm_config: cheap, max_size: 20}
`)
		tenant, err := buildTenant(cfg, unshared(t, server), config.Tenant{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		in := input(40)
		in.Upstream = condense.Endpoint{BaseURL: "http://main/v1", APIKey: "client-key"}
		result, err := tenant.Condenser.Condense(in).Job.Run(context.Background())
		if err != nil || result.Condensation.Condenser != tt.kind || result.Condensation.Model != "tiny" {
			t.Errorf("%s: %+v, %v", tt.kind, result, err)
		}
		if server.url != "http://cheap/v1/chat/completions" || server.header.Get("Authorization") != "Bearer cheap-key" {
			t.Errorf("%s called %s with %v", tt.kind, server.url, server.header)
		}
		for _, part := range []string{`"model":"tiny"`, `"max_tokens":1000`, `"temperature":0.5`, tt.shape} {
			if !strings.Contains(server.body, part) {
				t.Errorf("%s: no %s in %s", tt.kind, part, server.body)
			}
		}
	}
}

// TestCondenserUsesUpstreamsKey checks that a condenser calls the upstream with the client's or the configured key, however the
// configuration spells the URL.
func TestCondenserUsesUpstreamsKey(t *testing.T) {
	for _, tt := range []struct{ text, model, maxTokens, key string }{
		{"{upstream: {base_url: 'HTTP://main/v1/'}, condenser: {type: llm, max_size: 20}}", "some-model", "2500", "client-key"},
		{"{upstream: {base_url: 'HTTP://main/v1', api_key: own-key}, condenser: {type: llm, max_size: 20, llm_config: a}, " +
			"llms: {a: {model: gpt-4o-mini, base_url: 'HTTP://main/v1/'}}}", "gpt-4o-mini", "4096", "own-key"},
	} {
		server := &answering{message: `{"role":"assistant","content":"DISCUSSED: they talked."}`}
		tenant, err := buildTenant(load(t, ".yaml", tt.text), unshared(t, server), config.Tenant{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		in := input(40)
		in.Model, in.Window = "some-model", 10000
		in.Upstream = condense.Endpoint{BaseURL: tenant.Upstream.BaseURL.String(), APIKey: "client-key"}
		if _, err := tenant.Condenser.Condense(in).Job.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if server.url != "http://main/v1/chat/completions" || server.header.Get("Authorization") != "Bearer "+tt.key {
			t.Errorf("called %s with %v", server.url, server.header)
		}
		for _, part := range []string{`"model":"` + tt.model + `"`, `"max_tokens":` + tt.maxTokens} {
			if !strings.Contains(server.body, part) {
				t.Errorf("no %s in %s", part, server.body)
			}
		}
	}
}

func BenchmarkFitted(b *testing.B) {
	cfg := config.Default()
	tenant, err := buildTenant(cfg, unshared(b, nil), config.Tenant{Name: "a"})
	if err != nil {
		b.Fatal(err)
	}
	in := condense.Input{View: &session.View{}, Window: 128000, Model: "gpt-4.1"}
	b.ReportAllocs()
	for b.Loop() {
		tenant.Condenser.Condense(in)
	}
}
