package proxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// line returns the newest log line with a message, once there are so many of them.
func (r *rig) line(message string, n int) map[string]any {
	r.t.Helper()
	var found []loggedEntry
	r.wait(func() bool {
		found = r.logs.FilterMessage(message).All()
		return len(found) >= n
	})
	if len(found) != n {
		r.t.Fatalf("%d lines %q, want %d", len(found), message, n)
	}
	return found[n-1].ContextMap()
}

// TestRequestLines ends requests in several ways and reads their log lines.
func TestRequestLines(t *testing.T) {
	_, spans := tracing(t)
	r := condensing(t, setup{lines: true, models: priced, spans: spans})
	resp := r.wantCondensed(messages(turns("ships", 11)...), "Authorization", "Bearer "+keyMark+"client")
	got := r.line("request", 1)
	for key, want := range map[string]any{
		"tenant": "default", "dialect": "chat", "model": "gpt-4o", "status": int64(200), "outcome": "ok", "source": "new",
		"session": resp.Header.Get("X-Dewpoint-Session"), "thread": resp.Header.Get("X-Dewpoint-Thread"), "events": int64(12),
		"events_forwarded": int64(len(r.forwarded().Messages)), "prompt_tokens": int64(r.forwarded().PromptTokens),
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	for _, key := range []string{"ms", "overhead_ms", "first_byte_ms", "condense_ms", "tokens", "tokens_forwarded", "completion_tokens", "trace_id"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %v", key, got)
		}
	}
	if reasons, ok := got["condensed"].([]any); !ok || len(reasons) != 1 || reasons[0] != "events" {
		t.Errorf("condensed for %v", got["condensed"])
	}
	for i, c := range []struct {
		answer              fakeupstream.Answer
		body, outcome, code string
	}{
		{fakeupstream.RateLimited("1"), hello, "upstream_error", "upstream_4xx"},
		{fakeupstream.Answer{}, `{"model":"gpt-4o",` + hello[1:], "refused", "duplicate_key"},
		{fakeupstream.Answer{Content: "some words", Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: 1}}, helloing, "upstream_broken", "upstream_broken"},
	} {
		if c.code != "duplicate_key" {
			r.up.Script(c.answer)
		}
		resp := r.post(c.body)
		_, _ = io.ReadAll(resp.Body) // it may break off
		resp.Body.Close()
		if got := r.line("request", i+2); got["outcome"] != c.outcome || got["code"] != c.code {
			t.Errorf("%v, want %s %s", got, c.outcome, c.code)
		}
	}
}

// TestLogLinesHoldNoText: no log line contains text of a client or a model.
func TestLogLinesHoldNoText(t *testing.T) {
	r := newRig(t, setup{lines: true, models: priced})
	const secret = "nobody-must-see-this"
	r.up.Script(fakeupstream.Answer{Content: secret})
	r.ask(strings.ReplaceAll(messages(say("user", secret)), "gpt-4o", "gpt-4o"), "X-Secret", secret, "Authorization", "Bearer "+keyMark+secret)
	resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/"+secret+"?q="+secret, ""))
	must(t, err)
	drain(t, resp)
	r.ask(`{"model":"gpt-4o","` + secret + `":{}`)
	r.line("request", 3)
	for _, entry := range r.logs.All() {
		if text := logged(entry); strings.Contains(text, secret) {
			t.Errorf("logged: %s", text)
		}
	}
	if n := r.logs.FilterMessage("content").Len(); n != 0 {
		t.Errorf("%d lines of content", n)
	}
}

// TestRequestsAreLoggedOnlyIfConfigured: requests are logged only if that is configured.
func TestRequestsAreLoggedOnlyIfConfigured(t *testing.T) {
	r := newRig(t, setup{tenants: one(func(t *proxy.Tenant) { t.LogContent = true })})
	r.ask(hello)
	resp, _ := r.ask(hello)
	if n := r.logs.FilterMessage("request").Len() + r.logs.FilterMessage("content").Len(); n != 0 || resp.StatusCode != 200 {
		t.Errorf("%d lines", n)
	}
}

// TestContentIsLoggedForTenantsThatAskForIt: the content of requests is logged for one tenant that is so configured, whole and shortened.
func TestContentIsLoggedForTenantsThatAskForIt(t *testing.T) {
	r := condensing(t, setup{lines: true, models: priced, tenants: one(func(tenant *proxy.Tenant) {
		tenant.LogContent, tenant.Condenser = true, llm(0, "", patience)
	})})
	r.up.Script(fakeupstream.Answer{Content: "the answer"}, fakeupstream.Answer{
		ToolCalls: []fakeupstream.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":"it"}`}},
	})
	r.ask(hello)
	got := r.line("content", 1)
	if got["request"] != hello || got["answer"] != "the answer" || got["tenant"] != "default" || got["forwarded"] != nil || got["session"] == "" {
		t.Errorf("content %v", got)
	}
	body := messages(turns("ships", 11)...)
	r.wantCondensed(body)
	got = r.line("content", 2)
	if got["forwarded"] != string(r.forwarded().Body) || got["request"] != body || got["answer"] != `look {"at":"it"}` {
		t.Errorf("content %v", got)
	}
	long := messages(say("user", strings.Repeat("a", 100<<10)+" the end"))
	r.ask(long)
	text, _ := r.line("content", 3)["request"].(string)
	if len(text) > 16<<10 || !strings.HasPrefix(text, long[:1000]) || !strings.HasSuffix(text, long[len(long)-1000:]) || !strings.Contains(text, " [...] ") {
		t.Errorf("%d bytes of %d", len(text), len(long))
	}
	line := r.logs.FilterMessage("content").All()[2]
	if b, err := json.Marshal(line.ContextMap()); err != nil || len(b) > 64<<10 {
		t.Errorf("a line of %d bytes, %v", len(b), err)
	}
	if slices.ContainsFunc(r.logs.FilterMessage("request").All(), func(e loggedEntry) bool { return strings.Contains(logged(e), "ships") }) {
		t.Error("content is in a request's own line")
	}
}

// holding counts tokens, and records whether the server still held the request's bytes.
type holding struct {
	quarters
	r              *rig
	counted, freed atomic.Int32
}

func (h *holding) Counter(string) engine.Counter { return h }
func (h *holding) Message(c session.Content) int {
	h.counted.Add(1)
	if h.r.server.InFlight() == 0 {
		h.freed.Add(1)
	}
	return h.quarters.Message(c)
}

// TestBodyIsHeldUntilItsLogLineIsWritten: the body of a failed request that is counted only for its log line is held until then, so that no other request
// is read into its buffer.
func TestBodyIsHeldUntilItsLogLineIsWritten(t *testing.T) {
	for name, s := range map[string]setup{
		"refused":  {base: "http://127.0.0.1:1/v1"},
		"panicked": {transport: broken{}},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := &holding{}
			s.lines, s.tokens, s.limits = true, tokens, func(l *proxy.Limits) { l.PendingAppends = 0 }
			tokens.r = newRig(t, s)
			if name == "panicked" {
				tokens.r.atEnd("dewpoint_panics_total", 1)
			}
			tokens.r.ask(hello)
			if line := tokens.r.line("request", 1); line["tokens"] == nil || tokens.counted.Load() == 0 || tokens.freed.Load() > 0 {
				t.Errorf("%d messages were counted, %d of them freed; the line: %v", tokens.counted.Load(), tokens.freed.Load(), line)
			}
		})
	}
}

type broken struct{}

func (broken) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	panic("a defect of the transport")
}

// TestClientWithSummariesOfItsOwnIsNamedOnce: that a client makes summaries of its own is said once, with its name and how to switch it off.
func TestClientWithSummariesOfItsOwnIsNamedOnce(t *testing.T) {
	r := newRig(t, setup{})
	for client, body := range map[string]string{
		"OpenHands": messages(say("system", "You are maintaining a context-aware state summary for an interactive agent.\nYou will be given a list of events."),
			say("user", "<EVENT id=1>The agent ran make.</EVENT>\n\nNow summarize the events using the rules above.")),
		"LangChain": messages(say("user", "<role>\nContext Extraction Assistant\n</role>\n\n<primary_objective>\nYour sole objective in this task is to extract the "+
			"highest quality/most relevant context from the conversation history below.\n</primary_objective>\n\n<messages>\nHuman: Repair it.\n</messages>")),
	} {
		for range 2 {
			r.ask(body)
		}
		said := r.logs.FilterMessageSnippet("a client condenses its history by itself").FilterField(zap.String("client", client)).All()
		if len(said) != 1 || said[0].ContextMap()["how"] == "" {
			t.Errorf("%s: %v", client, said)
		}
	}
}
