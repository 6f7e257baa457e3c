package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// cachedAgent is an agent whose prompts upstream caches, in one of the protocols.
type cachedAgent struct {
	path string
	key  http.Header
	list string                                    // the member of the body with the messages
	body string                                    // the rest of the body
	step func(n int, result string) []string       // the messages of a step
	mark func(messages []string) (marked []string) // sets where the cache ends; nil: the protocol has no marks
	task string                                    // the agent's task; empty: the default
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func cachedAgents() map[string]cachedAgent {
	bearer := http.Header{"Authorization": {"Bearer sk-of-the-client"}, "X-Grok-Conv-Id": {"conversation"}, "X-Request-Id": {"one"}}
	return map[string]cachedAgent{
		"chat": {
			path: "/chat/completions", key: bearer, list: "messages",
			body: `{"model":"agent-model","stream":true,"stream_options":{"include_usage":true},"stop":["agent ends"],"tools":[{"type":"function","function":{"name":"run","parameters":{"type":"object"}}}],"messages":[%s]}`,
			step: func(n int, result string) []string {
				return []string{
					fmt.Sprintf(`{"role":"assistant","content":"Step %d.","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run","arguments":"{}"}}]}`, n, n),
					fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, n, result),
				}
			},
		},
		"messages": {
			path: "/messages", key: http.Header{"X-Api-Key": {"sk-of-the-client"}, "Anthropic-Version": {"2023-06-01"}}, list: "messages",
			body: `{"model":"agent-model","max_tokens":8000,"stream":true,"stop_sequences":["agent ends"],"thinking":{"type":"adaptive"},"tool_choice":{"type":"auto"},` +
				`"tools":[{"name":"run","input_schema":{"type":"object"}}],"messages":[%s]}`,
			step: func(n int, result string) []string {
				return []string{
					fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Step %d."},{"type":"tool_use","id":"toolu_%d","name":"run","input":{}}]}`, n, n),
					fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]}`, n, result),
				}
			},
			mark: func(messages []string) []string {
				last := len(messages) - 1
				return append(slices.Clone(messages[:last]), strings.TrimSuffix(messages[last], "}]}")+cacheMark+"}]}")
			},
		},
		"responses": {
			path: "/responses", key: bearer, list: "input",
			body: `{"model":"agent-model","stream":true,"store":true,"tools":[{"type":"function","name":"run","parameters":{"type":"object"}}],"input":[%s]}`,
			step: func(n int, result string) []string {
				return []string{
					fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Step %d."}]}`, n),
					fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{}"}`, n),
					fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, n, result),
				}
			},
		},
	}
}

// first returns the message with the agent's task, in its protocol.
func (r cachedAgent) first() string {
	task := cmp.Or(r.task, "Repair the build of the parcel service.")
	switch r.path {
	case "/messages":
		return `{"role":"user","content":[{"type":"text","text":"` + task + `"}]}`
	case "/responses":
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + task + `"}]}`
	}
	return `{"role":"user","content":"` + task + `"}`
}

// messagesOf returns the messages of a body, without marks.
func (r cachedAgent) messagesOf(t *testing.T, body []byte) []string {
	t.Helper()
	var top map[string]json.RawMessage
	ok(t, json.Unmarshal(body, &top))
	var all []json.RawMessage
	ok(t, json.Unmarshal(top[r.list], &all))
	texts := make([]string, len(all))
	for i, raw := range all {
		texts[i] = strings.ReplaceAll(string(raw), cacheMark, "")
	}
	return texts
}

// TestSummaryBehindTheCachedPrompt: a summary is requested from the request's own model after the cached prompt, if that costs
// less than a separate prompt; not if the prompt is not cached, if a cheap model costs less, or if the client would pay in the
// operator's place. If the model calls a tool instead, the request is repeated once.
func TestSummaryBehindTheCachedPrompt(t *testing.T) {
	for name, r := range cachedAgents() {
		for _, c := range []struct {
			name, summariser string
			cold, calls      bool   // the prompt is no longer cached; the model calls a tool
			asked            string // the expected field of the condensation
		}{
			{name: "warm", asked: "cached"},
			{name: "cold", cold: true, asked: "cold"},
			{name: "a cheap model", summariser: "{model: " + judge.Summariser + "}", asked: "cold"},
			{name: "a dear model", summariser: "{model: dear-model}", asked: "cached"},
			{name: "a model that the operator pays", summariser: "{model: dear-model, api_key: sk-of-the-operator}", asked: "cold"},
			{name: "a call of a tool", calls: true, asked: "cached_in_vain"},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				cold := func(req *fakeupstream.Request) bool { return !strings.Contains(string(req.Tools), "run") }
				summarise := func(req *fakeupstream.Request) fakeupstream.Answer {
					if c.calls && strings.Contains(string(req.Body), fakeupstream.RecordQuestion) {
						return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_x", Name: "run", Arguments: "{}"}}}
					}
					answer := fakeupstream.Extract(req)
					answer.Content += "\nNEXT_STEP: to go on."
					return answer
				}
				s := newSetting(t, fakeupstream.Options{IsSummary: cold, Summarise: summarise})
				config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
models:
  agent-model: {context_window: 200000, max_output: 8000, price: {input: 3, cached_input: 0.3, cache_write: 3.75, output: 15}}
  dear-model: {context_window: 200000, max_output: 8000, price: {input: 3, cached_input: 0.3, cache_write: 3.75, output: 15}}
  %s: {price: {input: 0.1, cached_input: 0.1, output: 0.4}}
condenser: {type: llm%s, max_size: 24, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), judge.Summariser, map[bool]string{true: ", llm_config: other"}[c.summariser != ""])
				if c.summariser != "" {
					config += "llms: {other: " + c.summariser + "}\n"
				}
				p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", config))
				r.run(t, s, p, c.cold)
				r.judge(t, s, p, c.asked)
			})
		}
	}
}

// TestFailedReuseIsRemembered: if a model called a tool instead of writing a record in two conversations, the cached prompt is not reused for a
// record in the third.
func TestFailedReuseIsRemembered(t *testing.T) {
	r := cachedAgents()["chat"]
	summarise := func(req *fakeupstream.Request) fakeupstream.Answer {
		if strings.Contains(string(req.Body), fakeupstream.RecordQuestion) {
			return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_x", Name: "run", Arguments: "{}"}}}
		}
		return fakeupstream.Extract(req)
	}
	s := newSetting(t, fakeupstream.Options{
		IsSummary: func(req *fakeupstream.Request) bool { return !strings.Contains(string(req.Tools), "run") }, Summarise: summarise,
	})
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
upstream: {base_url: %q}
store: %s
models:
  agent-model: {context_window: 200000, max_output: 8000, price: {input: 3, cached_input: 0.3, output: 15}}
condenser: {type: llm, max_size: 24, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
`, s.url, embedded(newStore(t)))))
	for _, r.task = range []string{"One", "Another one", "A third one"} {
		r.run(t, s, p, false)
	}
	behind, cold := 0, 0
	for _, req := range s.Upstream.Requests() {
		switch {
		case strings.Contains(string(req.Body), fakeupstream.RecordQuestion):
			behind++
		case req.Summary:
			cold++
		}
	}
	if behind != 2 || cold != 3 {
		t.Errorf("%d calls behind the prompt, and %d others", behind, cold)
	}
}

// run works until the history was condensed, and one step more.
func (r cachedAgent) run(t *testing.T, s *setting, p *process, cold bool) {
	t.Helper()
	messages, condensed := []string{r.first()}, false
	for n := 0; n < 40; n++ {
		messages = append(messages, r.step(n, strings.Repeat(fmt.Sprintf("line %d of a log ", n), 400))...)
		if cold {
			s.Upstream.DropCache()
		}
		sent := messages
		if r.mark != nil {
			sent = r.mark(messages)
		}
		a := sendTo(t, p, r.path, fmt.Appendf(nil, r.body, strings.Join(sent, ",")), r.key)
		_, err := a.rest()
		ok(t, err)
		if failed := a.Header.Get("X-Dewpoint-Condense-Failed"); failed != "" {
			t.Fatalf("step %d: %s", n, failed)
		}
		if condensed {
			return
		}
		condensed = a.Header.Get("X-Dewpoint-Condensed") != ""
	}
	t.Fatal("nothing was condensed")
}

// judge compares the calls for a summary, and the reports about them, with the expected form.
func (r cachedAgent) judge(t *testing.T, s *setting, p *process, asked string) {
	t.Helper()
	behind, cold := 0, 0
	var before fakeupstream.Request // the agent's last request before the summary
	for _, req := range s.Upstream.Requests() {
		switch {
		case req.Refused != nil:
			t.Errorf("%s was refused: %v: %.300s", req.Path, req.Refused, req.Body)
		case !req.Summary:
			if behind+cold == 0 {
				before = req
			}
		case !strings.Contains(string(req.Body), fakeupstream.RecordQuestion):
			if cold++; req.Header.Get("X-Grok-Conv-Id") != "" {
				t.Error("a prompt of its own goes where the client's cache is")
			}
		default:
			behind++
			had, has := r.messagesOf(t, before.Body), r.messagesOf(t, req.Body)
			if len(has) <= len(had) || !slices.Equal(had, has[:len(had)]) || string(req.Tools) != string(before.Tools) || req.Model != before.Model {
				t.Errorf("the question has another prefix:\n%.500s\nbefore:\n%.500s", req.Body, before.Body)
			}
			if req.CachedTokens < before.PromptTokens*9/10 {
				t.Errorf("%d tokens of %d came from the cache, %d had been sent before", req.CachedTokens, req.PromptTokens, before.PromptTokens)
			}
			if conversation := "X-Grok-Conv-Id"; req.Header.Get(conversation) != before.Header.Get(conversation) || req.Header.Get("X-Request-Id") == "one" {
				t.Errorf("the question goes elsewhere, with %v", req.Header)
			}
			if !req.Stream || strings.Contains(string(req.Body), "agent ends") {
				t.Errorf("what the agent wants of its answer is wanted of ours: %.300s", req.Body)
			}
		}
	}
	want := map[string][2]int{"cached": {1, 0}, "cold": {0, 1}, "cached_in_vain": {1, 1}}[asked]
	if behind != want[0] || cold != want[1] {
		t.Errorf("%d calls behind the prompt and %d others, want %v", behind, cold, want)
	}
	if row := fmt.Sprintf(`dewpoint_summaries_total{asked=%q,tenant="default"} 1`, asked); !slices.Contains(p.metrics(), row) {
		t.Errorf("the metrics lack %s", row)
	}
	c := p.condensation(t)
	if c.Asked != asked || (c.CachedUsage.Cached > 0) != (behind > 0) || c.Calls != behind+cold || c.Usage.Input <= c.CachedUsage.Cached {
		t.Errorf("the condensation is told of as %+v", c)
	}
}

// askedFor is a condensation in the admin API, with the way in which its summary was requested.
type askedFor struct {
	Asked, Model string
	Calls        int
	Usage        struct{ Input, Cached, Output int }
	CachedUsage  struct{ Input, Cached, Output int } `json:"cached_usage"`
}

// condensation returns the only condensation.
func (p *process) condensation(t *testing.T) askedFor {
	t.Helper()
	var sessions struct{ Sessions []struct{ ID string } }
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions", http.StatusOK), &sessions))
	var one struct{ Threads []struct{ ID string } }
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+sessions.Sessions[0].ID, http.StatusOK), &one))
	var list struct{ Condensations []askedFor }
	ok(t, json.Unmarshal(p.administer(http.MethodGet,
		"/sessions/"+sessions.Sessions[0].ID+"/threads/"+one.Threads[0].ID+"/condensations", http.StatusOK), &list))
	if len(list.Condensations) != 1 {
		t.Fatalf("there are %d condensations", len(list.Condensations))
	}
	return list.Condensations[0]
}
