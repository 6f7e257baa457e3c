package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// priced has two models with prices in micro-dollars a token.
func priced(name string) proxy.ModelInfo {
	switch name {
	case "gpt-4o":
		return proxy.ModelInfo{Model: engine.Model{Name: "gpt-4o", Window: 100_000}, Price: model.Price{Input: 10, CachedInput: 1, CacheWrite: 10, Output: 40}}
	case cheapModel:
		return proxy.ModelInfo{Model: engine.Model{Name: cheapModel, Window: 100_000}, Price: model.Price{Input: 2, CachedInput: 2, CacheWrite: 2, Output: 4}}
	}
	return proxy.ModelInfo{}
}

func requests(dialect, model, status, code string) string {
	return fmt.Sprintf(`dewpoint_requests_total{code=%q,dialect=%q,model=%q,status=%q,tenant="default"}`, code, dialect, model, status)
}

// TestRequestsAreCounted ends requests in every way and checks where each is counted.
func TestRequestsAreCounted(t *testing.T) {
	r := newRig(t, setup{models: priced, limits: func(l *proxy.Limits) { l.Body = 1 << 20 }})
	r.atEnd(requests("chat", "gpt-4o", "2xx", ""), 2)
	r.ask(hello)
	r.ask(helloing)
	r.atEnd(requests("chat", "other", "2xx", ""), 2)
	r.ask(strings.Replace(hello, "gpt-4o", "my own model", 1))
	r.ask(strings.Replace(hello, "gpt-4o", "another one", 1))
	r.atEnd(requests("chat", "gpt-4o", "4xx", "upstream_4xx"), 1)
	r.atEnd(requests("chat", "gpt-4o", "5xx", "upstream_5xx"), 1)
	r.up.Script(fakeupstream.RateLimited("1"), fakeupstream.ServerError())
	r.ask(hello)
	r.ask(hello)
	r.atEnd(requests("chat", "", "4xx", "duplicate_key"), 1)
	r.ask(`{"model":"gpt-4o",` + hello[1:])
	r.atEnd(requests("", "", "4xx", "request_too_large"), 1)
	r.ask(messages(say("user", strings.Repeat("a", 2<<20))))
	r.atEnd(requests("", "", "2xx", ""), 1)
	resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/models", ""))
	must(t, err)
	drain(t, resp)
	r.atEnd(`dewpoint_requests_total{code="malformed_request",dialect="",model="",status="4xx",tenant=""}`, 1)
	w := r.dial()
	w.send("no request\r\n\r\n")
	w.answer(http.MethodGet)
	r.atEnd(`dewpoint_request_seconds_count{tenant="default"}`, 9)
	r.atEnd(`dewpoint_upstream_first_byte_seconds_count{tenant="default"}`, 7)
	r.atEnd(`dewpoint_overhead_seconds_count{part="request",tenant="default"}`, 7)
	r.atEnd(`dewpoint_overhead_seconds_count{part="answer",tenant="default"}`, 4)
	r.atEnd(`dewpoint_bytes_in_flight_limit`, float64(proxy.DefaultLimits().InFlight))
}

// TestUnknownKeysAreCountedWithoutATenant: a request with an unknown key is counted without a tenant.
func TestUnknownKeysAreCountedWithoutATenant(t *testing.T) {
	r := newRig(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		return []*proxy.Tenant{{Tenant: engine.Tenant{Name: "a", Condenser: condense.Noop{}}, Upstream: proxy.UpstreamConfig{BaseURL: base}}}
	}})
	r.ask(hello, "Authorization", "Bearer "+keyMark+"nobody")
	r.atEnd(`dewpoint_requests_total{code="invalid_api_key",dialect="",model="",status="4xx",tenant=""}`, 1)
}

// TestRequestsInFlight holds an answer back and checks the gauges meanwhile.
func TestRequestsInFlight(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{})
	r.up.Script(fakeupstream.Answer{Content: "x", Fault: fakeupstream.Fault{HoldHeaders: hold}})
	w := r.dial()
	w.post(hello)
	_, err := r.up.Wait(guard(t), 1)
	must(t, err)
	if n, bytes := r.metric("dewpoint_requests_in_flight"), r.metric("dewpoint_bytes_in_flight"); n != 1 || bytes < float64(len(hello)) {
		t.Errorf("%v requests with %v bytes in flight", n, bytes)
	}
	close(hold)
	w.answer(http.MethodPost)
}

// TestModelNamesAreBounded sends a thousand model names, which must not become a series each.
func TestModelNamesAreBounded(t *testing.T) {
	r := newRig(t, setup{models: priced})
	r.ask(strings.Replace(hello, "gpt-4o", "model", 1))
	before := strings.Count(r.scrape(), "\n")
	for i := range 50 {
		r.ask(strings.Replace(hello, "gpt-4o", fmt.Sprintf("model-%d", i), 1))
	}
	if after := strings.Count(r.scrape(), "\n"); after > before+40 { // Go's own grow a little
		t.Errorf("%d lines, before %d", after, before)
	}
}

// TestSavings runs a conversation that is condensed once, and compares the savings with what upstream received.
func TestSavings(t *testing.T) {
	counted := &noting{}
	r := condensing(t, setup{models: priced, tenants: one(func(tenant *proxy.Tenant) {
		tenant.Condenser = counted.llm(tenant.Name)
	})})
	counted.metrics = r.metrics
	for _, n := range []int{9, 11, 13, 15} {
		r.ask(messages(turns("ships", n)...))
	}
	var prompt, cached, own int
	for _, req := range r.up.Requests() {
		if req.Summary {
			own += req.PromptTokens
			continue
		}
		prompt, cached = prompt+req.PromptTokens, cached+req.CachedTokens
	}
	stage := func(name string) float64 {
		return r.metric(fmt.Sprintf(`dewpoint_tokens_total{model="gpt-4o",stage=%q,tenant="default"}`, name))
	}
	r.wait(func() bool { return stage("prompt") == float64(prompt) })
	if got := stage("cached"); got != float64(cached) {
		t.Errorf("cached %v, want %d", got, cached)
	}
	in, out := stage("in"), stage("forwarded")
	saved := r.metric(`dewpoint_saved_tokens_total{model="gpt-4o",tenant="default"}`)
	if longer := r.metric(`dewpoint_spent_tokens_total{kind="request",model="gpt-4o",tenant="default"}`); out != float64(prompt) || saved <= 0 || in-out != saved-longer {
		t.Errorf("in %v, forwarded %v of %d that upstream counted, saved %v, spent %v", in, out, prompt, saved, longer)
	}
	if got := r.metric(`dewpoint_summariser_tokens_total{kind="prompt",model="cheap",tenant="default"}`); got != float64(own) || own == 0 {
		t.Errorf("own prompt tokens %v, want %d", got, own)
	}
	spent := r.metric(`dewpoint_spent_usd_total{kind="summariser",model="cheap",tenant="default"}`)
	if want := float64(own) * 2 / 1e6; spent <= want || spent > 2*want { // the completion comes on top
		t.Errorf("own calls cost %v, their prompts alone %v", spent, want)
	}
	if n := r.metric(`dewpoint_summariser_seconds_count{outcome="replied",tenant="default"}`); n != 1 {
		t.Errorf("%v calls", n)
	}
	if n := r.metric(`dewpoint_condense_seconds_count{tenant="default"}`); n != 1 {
		t.Errorf("%v condensations were waited for", n)
	}
}

// noting makes condensers whose calls are recorded.
type noting struct {
	metrics *observe.Metrics
	spans   *observe.Spans
}

func (n *noting) llm(tenant string) *condense.LLM {
	return condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1, MinimumProgress: 0.1}, Summariser: late{n, tenant}, Model: cheapModel,
	})
}

// late is a summariser that gets its metrics after it was made.
type late struct {
	*noting
	tenant string
}

func (l late) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	return observe.Summariser{
		Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, Tenant: l.tenant, Metrics: l.metrics,
		Spans: l.spans, Models: priced,
	}.Summarise(ctx, r)
}

// wait waits for a condition.
func (r *rig) wait(so func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("it did not become so\n%s", r.scrape())
		}
	}
}

// TestSummariserFailures counts each kind of failure.
func TestSummariserFailures(t *testing.T) {
	for name, kind := range map[string]string{
		"error 500": "server", "rate limited": "rate_limited", "denied": "denied", "empty": "empty", "refusal": "refused",
		"truncated": "truncated", "inflated": "inflated", "no JSON": "malformed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted, answer := &noting{}, bad()[name]
			r := condensing(t, setup{
				models: priced, condenser: counted.llm("default"),
				upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return answer }},
			})
			counted.metrics = r.metrics
			r.wantUnchanged(messages(turns("ships", 11)...))
			r.atEnd(fmt.Sprintf(`dewpoint_summariser_failures_total{kind=%q,tenant="default"}`, kind), 1)
		})
	}
}

// TestSummariserCooling reports a tenant whose summariser is cooling down.
func TestSummariserCooling(t *testing.T) {
	var cooling atomic.Bool
	r := newRig(t, setup{tenants: one(func(tenant *proxy.Tenant) { tenant.Cooling = cooling.Load })})
	for want, is := range []bool{false, true} {
		cooling.Store(is)
		if got := r.metric(`dewpoint_summariser_cooling{tenant="default"}`); got != float64(want) {
			t.Errorf("cooling is %v, want %d", got, want)
		}
	}
}

// TestSessionsAreCounted starts sessions and threads in every way.
func TestSessionsAreCounted(t *testing.T) {
	r := newRig(t, setup{lines: true})
	talk := turns("ships", 5)
	var first any // thread
	begun := map[string]float64{}
	for i, c := range []struct {
		body, key, relation string
	}{
		{messages(talk[:2]...), "", "new"},
		{messages(talk[:4]...), "", "continuation"},
		{messages(append(slices.Clone(talk[:3]), say("user", "else?"))...), "", "fork"},
		{messages(turns("planes", 1)...), "mine", "new"},
		{messages(turns("trains", 1)...), "mine", "new"}, // another thread of it
	} {
		r.ask(c.body, "X-Dewpoint-Session", c.key)
		line := r.line("request", i+1)
		if i == 0 {
			first = line["thread"]
		}
		cause, _ := line["cause"].(string) // on a busy machine it may come too late for the line
		begun[fmt.Sprintf("dewpoint_threads_begun_total{cause=%q,kind=%q,tenant=\"default\"}", cause, c.relation)]++
		forked := c.relation == "fork" && line["parent"] == first && line["fork_at"] == int64(2)
		if line["relation"] != c.relation || forked != (line["parent"] != nil) || forked != (line["fork_at"] != nil) {
			t.Errorf("request %d: %v", i, line)
		}
	}
	r.atEnd(`dewpoint_sessions_begun_total{tenant="default"}`, 2)
	for name, n := range begun {
		if !strings.Contains(name, `"continuation"`) {
			r.atEnd(name, n)
		}
	}
	r.atEnd(`dewpoint_recognised_total{source="new",tenant="default"}`, 1)
	r.atEnd(`dewpoint_recognised_total{source="prefix",tenant="default"}`, 2)
	r.atEnd(`dewpoint_recognised_total{source="key",tenant="default"}`, 2)
}

// openMetrics returns the metrics in OpenMetrics format, which has exemplars.
func openMetrics(t *testing.T, m *observe.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	m.Handler().ServeHTTP(w, req)
	body, err := io.ReadAll(w.Body)
	must(t, err)
	if !strings.HasSuffix(string(body), "# EOF\n") {
		t.Errorf("this is no OpenMetrics: %.200s", body)
	}
	return string(body)
}
