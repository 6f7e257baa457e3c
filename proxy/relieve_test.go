package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// onRequest condenses only what it is asked to.
func onRequest() *condense.LLM {
	return condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{KeepFirst: 1, MinimumProgress: 0.1},
		Summariser: summariser.OpenAI{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience},
		Model:      cheapModel, MaxOutput: 400,
	})
}

// refusals is how many requests upstream refused.
func (r *rig) refusals() int {
	n := 0
	for _, req := range r.up.Requests() {
		if req.Refused != nil {
			n++
		}
	}
	return n
}

// TestOverflowIsRelieved: what upstream refuses for its length is condensed and sent again, and the limit is remembered.
func TestOverflowIsRelieved(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 2000}}, condenser: onRequest()})
	resp, body := r.ask(messages(turns("tea", 31)...))
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("X-Dewpoint-Condensed"), "overflow") {
		t.Fatalf("%s, condensed %q: %s", resp.Status, resp.Header.Get("X-Dewpoint-Condensed"), body)
	}
	before := r.refusals()
	if before == 0 {
		t.Fatal("nothing overflowed")
	}
	if resp, body := r.ask(messages(turns("tea", 51)...)); resp.StatusCode != http.StatusOK {
		t.Errorf("the next request: %s: %s", resp.Status, body)
	}
	if r.refusals() != before {
		t.Error("the limit is not remembered: the next request was refused first")
	}
}

// TestOverflowWithStatus200 is what some gateways answer.
func TestOverflowWithStatus200(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest()})
	r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: "application/json", Body: []byte(
		`{"error":{"message":"This endpoint's maximum context length is 1000 tokens. However, you requested about 3000 tokens (3000 of text input).","code":400}}`)}})
	resp, body := r.ask(messages(turns("tea", 31)...))
	if !strings.HasPrefix(resp.Header.Get("X-Dewpoint-Condensed"), "overflow") || strings.Contains(body, "maximum context") {
		t.Errorf("condensed %q: %s", resp.Header.Get("X-Dewpoint-Condensed"), body)
	}
}

// TestOverflowThatStays: what can not be made to fit gets upstream's own error, unchanged.
func TestOverflowThatStays(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 500}}, condenser: onRequest()})
	resp, body := r.ask(messages(say("user", strings.Repeat("one long question ", 300))))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "context_length_exceeded") || r.refusals() != 1 {
		t.Errorf("%s after %d refusals: %s", resp.Status, r.refusals(), body)
	}
}

// TestOverflowByMaxTokens: an answer that may be too long for the window is not the history's fault.
func TestOverflowByMaxTokens(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 8000}}, condenser: onRequest()})
	body := strings.Replace(messages(turns("tea", 9)...), `{"model"`, `{"max_tokens":7900,"model"`, 1)
	resp, answer := r.ask(body)
	if resp.StatusCode != http.StatusBadRequest || r.refusals() != 1 || r.up.SummariserCalls() != 0 {
		t.Errorf("%s, %d refusals, %d summaries: %s", resp.Status, r.refusals(), r.up.SummariserCalls(), answer)
	}
}

// TestOtherErrorsAreNotOverflows come back unchanged, and are not sent again.
func TestOtherErrorsAreNotOverflows(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest()})
	for _, scripted := range []fakeupstream.Answer{
		fakeupstream.RateLimited("7"), fakeupstream.ServerError(), fakeupstream.BadGateway(),
	} {
		r.up.Script(scripted)
		before := len(r.up.Requests())
		resp, _ := r.ask(messages(turns("tea", 31)...))
		if resp.StatusCode < 400 || len(r.up.Requests()) != before+1 {
			t.Errorf("%s after %d requests", resp.Status, len(r.up.Requests())-before)
		}
	}
}

// TestTrailingResultIsCut: when a single new tool result overflows the window, it is shown in part, for good.
func TestTrailingResultIsCut(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 4000}}, condenser: onRequest()})
	history := []string{
		say("user", "read it"),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
		fmt.Sprintf(`{"role":"tool","tool_call_id":"call_1","content":%q}`, strings.Repeat("a line of a long file\n", 2000)),
	}
	resp, body := r.ask(messages(history...))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	cut := string(r.forwarded().Messages[2])
	if len(cut) > 16000 || !strings.Contains(cut, "a line of a long file") {
		t.Errorf("forwarded %d bytes: %.200s", len(cut), cut)
	}
	before := r.refusals()
	if resp, body = r.ask(messages(append(history, say("assistant", "Read."), say("user", "And?"))...)); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if again := string(r.forwarded().Messages[2]); again != cut || r.refusals() != before {
		t.Errorf("the cut result changed, or overflowed again: %.200s", again)
	}
}

// TestNotice tells a tenant's clients in words what was done, in a header and, where asked for, in the stream.
func TestNotice(t *testing.T) {
	r := condensing(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		return []*proxy.Tenant{{
			Tenant: engine.Tenant{
				Name: "default", Anonymous: true, Condenser: llm(0, "", patience),
			},
			Upstream: proxy.UpstreamConfig{BaseURL: base}, Notify: true,
		}}
	}})
	body := strings.Replace(messages(turns("tea", 21)...), `{"model"`, `{"stream":true,"model"`, 1)
	resp, answer := r.ask(body, "X-Dewpoint-Notify", "comment")
	notice := resp.Header.Get("X-Dewpoint-Notice")
	if !strings.HasPrefix(notice, "Condensed ") || !strings.HasPrefix(answer, ": "+notice+"\n\ndata: ") || !strings.HasSuffix(answer, "data: [DONE]\n\n") {
		t.Errorf("notice %q, stream %.200q", notice, answer)
	}
	if _, answer := r.ask(body); strings.Contains(answer, "Condensed") {
		t.Errorf("a comment that was not asked for: %.200q", answer)
	}
}

// TestAGuessedWindowIsNotLearnt: an overflow that names no limit, of a request in which nothing could be forgotten, says
// nothing of the model to others.
func TestAGuessedWindowIsNotLearnt(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest(), window: 100000})
	r.up.Script(fakeupstream.Answer{Error: &fakeupstream.APIError{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Param: "input", Code: "context_length_exceeded",
		Message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
	}})
	if resp, body := r.ask(messages(say("user", "see the file"))); resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if resp, body := r.ask(messages(turns("tea", 31)...)); resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Condensed") != "" {
		t.Errorf("another conversation: %s, condensed %q: %s", resp.Status, resp.Header.Get("X-Dewpoint-Condensed"), body)
	}
}

// TestOverflowOfAPrefix: a client that goes back in its history is relieved like any other.
func TestOverflowOfAPrefix(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"small": 2000}}, condenser: onRequest()})
	if resp, body := r.ask(messages(turns("tea", 41)...)); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	body := strings.Replace(messages(turns("tea", 31)...), "gpt-4o", "small", 1)
	if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK || r.refusals() == 0 {
		t.Errorf("%s after %d refusals: %s", resp.Status, r.refusals(), answer)
	}
	if resp, answer := r.ask(messages(turns("tea", 43)...)); resp.StatusCode != http.StatusOK {
		t.Errorf("the longer history: %s: %s", resp.Status, answer)
	}
}

// TestAPromptThatDoesNotFitIsNotTheSummarisersFault: the history is shortened without it, which the log says, and others
// still get their summaries.
func TestAPromptThatDoesNotFitIsNotTheSummarisersFault(t *testing.T) {
	health := healthAt(time.Now)
	small := condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{KeepFirst: 1},
		Health:     health.Tenant(),
		Summariser: summariser.OpenAI{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience},
		Model:      cheapModel, Window: 300, MaxOutput: 200,
	})
	r := condensing(t, setup{models: windowOf(1000), tenants: func(base *url.URL) []*proxy.Tenant {
		return []*proxy.Tenant{{
			Tenant:   engine.Tenant{Name: "default", Anonymous: true, Condenser: small},
			Upstream: proxy.UpstreamConfig{BaseURL: base},
		}}
	}})
	resp, body := r.ask(messages(turns("tea", 31)...))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Condensed") == "" || r.up.SummariserCalls() != 0 {
		t.Fatalf("%s, condensed %q, %d calls: %s", resp.Status, resp.Header.Get("X-Dewpoint-Condensed"), r.up.SummariserCalls(), body)
	}
	if !health.Ready(condense.Attempt{Endpoint: condense.Endpoint{BaseURL: r.up.URL() + "/v1"}, Model: cheapModel}) {
		t.Error("the summariser is left alone although nobody asked it")
	}
	if r.logs.FilterMessage("condensed without a summary").Len() != 1 {
		t.Error("the log does not say that there is no summary")
	}
}

// TestAStalledErrorIsGivenUp: an error is read before it is relayed, but not waited for without end.
func TestAStalledErrorIsGivenUp(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest(), limits: func(l *proxy.Limits) { l.StreamIdle = 50 * time.Millisecond }})
	hold := make(chan struct{})
	defer close(hold)
	stalled := fakeupstream.ServerError()
	stalled.Fault = fakeupstream.Fault{Hold: hold, HoldAfter: 1}
	r.up.Script(stalled)
	resp, err := r.client.Do(r.request(t.Context(), http.MethodPost, "/v1/chat/completions", messages(turns("tea", 3)...)))
	if err != nil {
		return // broken before its head was out
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%s, a clean end after %q", resp.Status, body)
	}
}
