package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// onRequest condenses only when it is asked to.
func onRequest() *condense.LLM {
	return condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{KeepFirst: 1, MinimumProgress: 0.1},
		Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience},
		Model:      cheapModel, MaxOutput: 400,
	})
}

// refusals returns how many requests upstream refused.
func (r *rig) refusals() int {
	n := 0
	for _, req := range r.up.Requests() {
		if req.Refused != nil {
			n++
		}
	}
	return n
}

// TestOverflowIsRelieved: a request that upstream refuses as too long is condensed and sent again, and the limit is remembered.
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

// keeping is a store that reports each condensation that it logs.
type keeping struct {
	session.Store
	kept chan struct{}
}

func (k *keeping) over(s session.Store) session.Store {
	k.Store = s
	return k
}

func (k *keeping) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	defer func() { k.kept <- struct{}{} }()
	return k.Store.Condense(ctx, id, c)
}

// TestASummaryOutlivesAnAnswerThatDoesNotCome: when a request that was condensed for an overflow is retried, because upstream broke off or had
// no capacity, or the client did not wait, it is not condensed again.
func TestASummaryOutlivesAnAnswerThatDoesNotCome(t *testing.T) {
	for name, failure := range map[string]fakeupstream.Answer{
		"upstream resets": {Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: -1}},
		"client leaves":   {Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}},
		"rate limit":      fakeupstream.RateLimited("1"),
		"bad gateway":     fakeupstream.BadGateway(),
		"server error":    fakeupstream.ServerError(),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var back atomic.Bool
			store := &keeping{kept: make(chan struct{}, 8)}
			r := condensing(t, setup{condenser: onRequest(), store: store.over, upstream: fakeupstream.Options{
				Windows: map[string]int{"gpt-4o": 2000}, Reply: func(*fakeupstream.Request) (a fakeupstream.Answer) {
					if back.Load() {
						return a
					}
					if failure.Fault.HoldHeaders != nil {
						leave()
					}
					return failure
				},
			}})
			body := messages(turns("tea", 31)...)
			if resp, err := r.client.Do(r.request(ctx, http.MethodPost, "/v1/chat/completions", body)); err == nil {
				_ = resp.Body.Close()
			}
			select {
			case <-store.kept:
			case <-guard(t).Done():
				t.Fatal("nothing was kept")
			}
			back.Store(true)
			refused, paid := r.refusals(), r.up.SummariserCalls()
			if refused == 0 || paid == 0 {
				t.Fatalf("%d refusals, %d summaries", refused, paid)
			}
			if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK || r.refusals() != refused || r.up.SummariserCalls() != paid {
				t.Errorf("%s, %d more refusals, %d more summaries: %s", resp.Status, r.refusals()-refused, r.up.SummariserCalls()-paid, answer)
			}
		})
	}
}

// TestOverflowStatedWithStatus200IsRelieved: some gateways report an overflow so.
func TestOverflowStatedWithStatus200IsRelieved(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest()})
	r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: "application/json", Body: []byte(
		`{"error":{"message":"This endpoint's maximum context length is 1000 tokens. However, you requested about 3000 tokens (3000 of text input).","code":400}}`)}})
	resp, body := r.ask(messages(turns("tea", 31)...))
	if !strings.HasPrefix(resp.Header.Get("X-Dewpoint-Condensed"), "overflow") || strings.Contains(body, "maximum context") {
		t.Errorf("condensed %q: %s", resp.Header.Get("X-Dewpoint-Condensed"), body)
	}
}

// TestOverflowStatedInAStreamIsRelieved: others report it in the first event of a stream.
func TestOverflowStatedInAStreamIsRelieved(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest()})
	r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: "text/event-stream", Body: []byte(
		fakeupstream.ErrorEvent(&fakeupstream.APIError{
			Message: "This model's maximum context length is 1000 tokens. However, your messages resulted in 3000 tokens.",
			Type:    "invalid_request_error", Param: "messages", Code: "context_length_exceeded",
		}))}})
	resp, body := r.ask(strings.Replace(messages(turns("tea", 31)...), `{"model"`, `{"stream":true,"model"`, 1))
	if !strings.HasPrefix(resp.Header.Get("X-Dewpoint-Condensed"), "overflow") || strings.Contains(body, "context_length_exceeded") {
		t.Errorf("condensed %q: %s", resp.Header.Get("X-Dewpoint-Condensed"), body)
	}
}

// TestOverflowThatCannotBeRelievedIsRelayed: if a request cannot be made to fit, the client gets upstream's error unchanged.
func TestOverflowThatCannotBeRelievedIsRelayed(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 500}}, condenser: onRequest()})
	resp, body := r.ask(messages(say("user", strings.Repeat("one long question ", 300))))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "context_length_exceeded") || r.refusals() != 1 {
		t.Errorf("%s after %d refusals: %s", resp.Status, r.refusals(), body)
	}
}

// TestOverflowByUpstreamsCountIsRelieved: an upstream that counts more than we do, and gives its limit but not its count, refuses a request that
// fits by ours. It is relieved under every condenser, and those that have limits keep the next conversation below that size.
func TestOverflowByUpstreamsCountIsRelieved(t *testing.T) {
	const limit = 4000
	for what, text := range map[string]string{
		"limit alone": "This model's maximum context length is 4000 tokens.",
		"lower bound": "This model's maximum context length is 4000 tokens. However, you requested 0 output tokens and your prompt contains at least 4001 input tokens",
		"with output": "Your request exceeded model token limit: 4000 (requested: 4400)",
	} {
		for name, c := range map[string]condense.Condenser{
			"llm": onRequest(), "masking": condense.ObservationMasking{AttentionWindow: 100}, "trim": condense.ToolOutputTrim{},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				var refused atomic.Int32
				reply := func(req *fakeupstream.Request) fakeupstream.Answer {
					if len(req.Body)/3 <= limit {
						return fakeupstream.Answer{Content: "Fine."}
					}
					refused.Add(1)
					return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: text}}
				}
				r := condensing(t, setup{condenser: c, window: 2 * limit, upstream: fakeupstream.Options{Reply: reply}})
				for i, body := range []string{messages(turns("tea", 31)...), messages(turns("ships", 33)...)} {
					if n := len(body) / 4; n <= limit*3/4 || n >= limit*49/50 {
						t.Fatalf("we count about %d", n)
					}
					if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK || refused.Load() > 1 && name == "llm" {
						t.Errorf("request %d: %s after %d refusals: %s", i, resp.Status, refused.Load(), answer)
					}
				}
				if refused.Load() == 0 {
					t.Error("nothing overflowed")
				}
			})
		}
	}
}

// TestWindowIsLearntWithTheReserve: the window learnt from such an error includes what the client reserves for the answer, so a
// conversation that upstream accepts is not condensed for it.
func TestWindowIsLearntWithTheReserve(t *testing.T) {
	const limit, reserve = 8000, 3000
	reply := func(req *fakeupstream.Request) fakeupstream.Answer {
		if len(req.Body)/3+reserve <= limit {
			return fakeupstream.Answer{Content: "Fine."}
		}
		return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf("This model's maximum context length is %d tokens.", limit)}}
	}
	r := condensing(t, setup{condenser: onRequest(), upstream: fakeupstream.Options{Reply: reply}})
	for _, c := range []struct {
		body      string
		condensed bool
	}{
		{messages(turns("tea", 45)...), true},
		{messages(turns("ships", 32)...), false},
	} {
		resp, answer := r.ask(fmt.Sprintf(`{"max_tokens":%d,`, reserve) + c.body[1:])
		if did := resp.Header.Get("X-Dewpoint-Condensed"); resp.StatusCode != http.StatusOK || (did != "") != c.condensed {
			t.Errorf("%d bytes: condensed %q: %s %s", len(c.body), did, resp.Status, answer)
		}
	}
}

// TestOverflowByMaxTokensIsRelayed: if the answer may be too long for the window, condensing the history does not help.
func TestOverflowByMaxTokensIsRelayed(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 8000}}, condenser: onRequest()})
	body := strings.Replace(messages(turns("tea", 9)...), `{"model"`, `{"max_tokens":7900,"model"`, 1)
	resp, answer := r.ask(body)
	if resp.StatusCode != http.StatusBadRequest || r.refusals() != 1 || r.up.SummariserCalls() != 0 {
		t.Errorf("%s, %d refusals, %d summaries: %s", resp.Status, r.refusals(), r.up.SummariserCalls(), answer)
	}
}

// TestOtherErrorsAreNotOverflows: other errors are relayed unchanged, and the request is not sent again.
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

// TestNewResultThatOverflowsTheWindowIsCut: if a single new tool result overflows the window, it is shown in part from then on.
func TestNewResultThatOverflowsTheWindowIsCut(t *testing.T) {
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

// TestNotice: clients of a tenant with notices get a sentence about what was done, in a header and, if they ask for it, in the stream.
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

// TestNoticeInOtherStreams: a stream of a size that upstream has told comes whole behind its notice, and one in an unknown coding without a
// notice.
func TestNoticeInOtherStreams(t *testing.T) {
	body := "data: " + chunkOne + "\n\ndata: [DONE]\n\n"
	for _, encoding := range []string{"", "Content-Encoding: x-own\r\n"} {
		r := newRig(t, setup{
			base: cannedUpstream(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s", encoding, len(body), body)),
			tenants: func(base *url.URL) []*proxy.Tenant {
				return []*proxy.Tenant{{
					Tenant:   engine.Tenant{Name: "default", Anonymous: true, Condenser: condense.Excerpts{Settings: condense.Settings{MaxSize: 20, KeepFirst: 1}}},
					Upstream: proxy.UpstreamConfig{BaseURL: base}, Notify: true,
				}}
			},
		})
		asked := strings.Replace(messages(turns("tea", 21)...), `{"model"`, `{"stream":true,"model"`, 1)
		resp, got := r.ask(asked, "X-Dewpoint-Notify", "comment", "Accept-Encoding", "identity")
		notice, want := resp.Header.Get("X-Dewpoint-Notice"), body
		if encoding == "" {
			want = ": " + notice + "\n\n" + body
		}
		if notice == "" || got != want {
			t.Errorf("%q: notice %q, stream %q", encoding, notice, got)
		}
	}
}

// TestAGuessedWindowIsNotLearnt: an overflow that names no limit, of a request in which nothing could be hidden, teaches nothing about the
// model.
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

// TestOverflowOfAForkIsRelieved: a client that goes back in its history gets relief like any other.
func TestOverflowOfAForkIsRelieved(t *testing.T) {
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

// TestPromptTooLongForTheSummariserIsNoFailureOfIt: the history is shortened without the summariser, which is logged, and others still get
// their summaries.
func TestPromptTooLongForTheSummariserIsNoFailureOfIt(t *testing.T) {
	health := healthAt(time.Now)
	small := condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{KeepFirst: 1},
		Health:     health.Tenant(),
		Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience},
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
		t.Error("the summariser is left alone although it was not asked")
	}
	if r.logs.FilterMessage("condensed without a summary").Len() != 1 {
		t.Error("the log does not say that there is no summary")
	}
}

// TestAStalledErrorIsGivenUp: an error is read before it is relayed, but not waited for indefinitely.
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

// headed keeps the user's first message.
func headed() *condense.LLM {
	return condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{MaxSize: 10, KeepFirst: 1, MinimumProgress: 0.1},
		Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience}, Model: cheapModel,
	})
}

// alternating is an upstream that requires alternating roles.
func alternating(window int) fakeupstream.Options {
	return fakeupstream.Options{Alternates: true, ContextWindow: window, SummariserModels: []string{cheapModel}}
}

// TestRolesAlternate: after the first refusal the summary is joined to the user message before it, and there is no other refusal.
func TestRolesAlternate(t *testing.T) {
	r := condensing(t, setup{upstream: alternating(0), condenser: headed()})
	var first string
	for n := 13; n < 40; n += 2 {
		resp, body := r.ask(messages(turns("tea", n)...))
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Condense-Failed") != "" {
			t.Fatalf("%d messages: %s, failed %q: %s", n, resp.Status, resp.Header.Get("X-Dewpoint-Condense-Failed"), body)
		}
		if resp.Header.Get("X-Dewpoint-Condensed") != "" {
			first = string(r.forwarded().Messages[1])
		}
		if got := string(r.forwarded().Messages[1]); first != "" && got != first {
			t.Errorf("%d messages: the prefix changed from %.300s to %.300s", n, first, got)
		}
	}
	if r.refusals() != 1 || first == "" {
		t.Errorf("%d refusals, first message %.300s", r.refusals(), first)
	}
	if !strings.Contains(first, "tea") || strings.Count(first, "dewpoint_") == 0 {
		t.Errorf("the summary has not joined the first user message: %.500s", first)
	}
}

// TestRolesAlternateAsConfigured: nothing is refused if the operator has configured alternate_roles.
func TestRolesAlternateAsConfigured(t *testing.T) {
	r := condensing(t, setup{upstream: alternating(0), condenser: headed(), models: func(name string) proxy.ModelInfo {
		return proxy.ModelInfo{Model: engine.Model{Name: name, Alternates: true}}
	}})
	for n := 13; n < 40; n += 2 {
		if resp, body := r.ask(messages(turns("tea", n)...)); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d messages: %s: %s", n, resp.Status, body)
		}
	}
	if r.refusals() != 0 {
		t.Errorf("%d refusals", r.refusals())
	}
}

// TestRefusedChangeIsSentAgainUnchanged: a changed request that upstream refuses is sent again unchanged, and that is reported. If upstream refuses it for
// its key or rate, or is overloaded or away, it is not.
func TestRefusedChangeIsSentAgainUnchanged(t *testing.T) {
	quick.Skip(t)
	refused := func(status int) fakeupstream.Answer {
		return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: status, Message: "Something in it is wrong.", Type: "invalid_request_error"}}
	}
	for status, again := range map[int]bool{
		400: true, 403: true, 413: true, 422: true, 500: true, 501: true,
		401: false, 402: false, 404: false, 408: false, 429: false, 502: false, 503: false, 504: false, 529: false,
	} {
		r := condensing(t, setup{condenser: headed()})
		r.up.Script(refused(status))
		sent := messages(turns("tea", 21)...)
		resp, body := r.ask(sent)
		if again != (resp.StatusCode == http.StatusOK) || again != (string(r.forwarded().Body) == sent) {
			t.Errorf("%d: %s: %s", status, resp.Status, body)
		}
		if again != (resp.Header.Get("X-Dewpoint-Condense-Failed") == "refused") || again != (r.logs.FilterMessage("not condensed").Len() == 1) {
			t.Errorf("%d: failed %q", status, resp.Header.Get("X-Dewpoint-Condense-Failed"))
		}
	}
}

// TestUnchangedBodyIsNotSentTwice: an unchanged body is not sent twice.
func TestUnchangedBodyIsNotSentTwice(t *testing.T) {
	r := condensing(t, setup{condenser: headed()})
	r.up.Script(fakeupstream.Answer{Error: &fakeupstream.APIError{Status: 400, Message: "Something in it is wrong.", Type: "invalid_request_error"}})
	if resp, _ := r.ask(messages(turns("tea", 5)...)); resp.StatusCode != 400 || len(r.up.Requests()) != 1 {
		t.Errorf("%s after %d requests", resp.Status, len(r.up.Requests()))
	}
}

// calls returns an assistant message with so many calls, and their results of so many lines each.
func calls(name string, n, lines int) []string {
	var asked, answered []string
	for i := range n {
		id := fmt.Sprintf("call_%s_%d", name, i)
		asked = append(asked, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"read","arguments":"{}"}}`, id))
		answered = append(answered, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, strings.Repeat("a line of a long file\n", lines)))
	}
	return append([]string{`{"role":"assistant","content":null,"tool_calls":[` + strings.Join(asked, ",") + `]}`}, answered...)
}

// TestALargeResultLeavesTheHistoryAlone: if trimming the newest result is enough, no messages are hidden.
func TestALargeResultLeavesTheHistoryAlone(t *testing.T) {
	for name, window := range map[string]int{"learnt": 0, "known": 8000} {
		r := condensing(t, setup{upstream: fakeupstream.Options{ContextWindow: 8000}, condenser: onRequest(), window: window})
		history := append(turns("tea", 9), calls("big", 1, 50000)...)
		resp, body := r.ask(messages(history...))
		if resp.StatusCode != http.StatusOK || len(r.forwarded().Messages) != len(history) || r.up.SummariserCalls() != 0 {
			t.Errorf("%s: %s, %d of %d messages, %d summaries: %.300s",
				name, resp.Status, len(r.forwarded().Messages), len(history), r.up.SummariserCalls(), body)
		}
	}
}

// TestTrimsThatDidNotHelpAreUndone: results that were trimmed for an attempt that upstream refused are not trimmed afterwards.
func TestTrimsThatDidNotHelpAreUndone(t *testing.T) {
	for name, c := range map[string]condense.Condenser{
		"noop": condense.Noop{}, "llm": onRequest(), "window": condense.ConversationWindow{}, "masking": condense.ObservationMasking{AttentionWindow: 100},
	} {
		tooLong := fakeupstream.Answer{Error: &fakeupstream.APIError{
			Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
			Message: "This model's maximum context length is 4000 tokens. However, your messages resulted in 9000 tokens.",
		}}
		var over atomic.Bool
		r := condensing(t, setup{condenser: c, upstream: fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			if over.Load() {
				return fakeupstream.Answer{Content: "Fine."}
			}
			return tooLong
		}}})
		history := append(turns("tea", 21), calls("big", 1, 1000)...)
		resp, body := r.ask(messages(history...))
		if resp.StatusCode != 400 || !strings.Contains(body, "context_length_exceeded") {
			t.Fatalf("%s: %s: %s", name, resp.Status, body)
		}
		over.Store(true)
		history = append(history, say("assistant", "Done."), say("user", "And?"))
		sent := messages(history...)
		if resp, _ := r.ask(sent); resp.StatusCode != 200 || string(r.forwarded().Body) != sent {
			t.Errorf("%s: %s, changed: %t", name, resp.Status, string(r.forwarded().Body) != sent)
		}
	}
}

// TestSummariesThatDoNotHelpArePaidForOnce: a client that retries a request which no condensation makes acceptable does not pay for summaries each
// time.
func TestSummariesThatDoNotHelpArePaidForOnce(t *testing.T) {
	r := condensing(t, setup{condenser: onRequest(), upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) (a fakeupstream.Answer) {
		if req.Model == cheapModel {
			return a
		}
		return fakeupstream.Answer{Error: &fakeupstream.APIError{
			Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
			Message: "This model's maximum context length is 4000 tokens. However, your messages resulted in 9000 tokens.",
		}}
	}}})
	sent := messages(append(turns("tea", 21), calls("big", 1, 1000)...)...)
	paid := 0
	for i := range 3 {
		if resp, body := r.ask(sent); resp.StatusCode != 400 || !strings.Contains(body, "context_length_exceeded") {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		switch calls := r.up.SummariserCalls(); {
		case i == 0 && calls == 0:
			t.Fatal("no summary was tried")
		case i > 0 && calls != paid:
			t.Errorf("retry %d paid for %d more summaries", i, calls-paid)
		}
		paid = r.up.SummariserCalls()
	}
}

// TestResultsThatWereTrimmedAreTrimmedFurther: a result that was trimmed on arrival can still be too long.
func TestResultsThatWereTrimmedAreTrimmedFurther(t *testing.T) {
	trim := condense.Pipeline{Stages: []condense.Condenser{condense.ToolOutputTrim{}, onRequest()}}
	r := condensing(t, setup{upstream: fakeupstream.Options{ContextWindow: 8000}, condenser: trim})
	history := append([]string{say("user", "read them")}, calls("all", 8, 2000)...)
	for range 3 {
		if resp, body := r.ask(messages(history...)); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		history = append(history, say("assistant", "Read."), say("user", "And?"))
	}
	if r.refusals() != 1 {
		t.Errorf("%d refusals", r.refusals())
	}
}

// TestLoopThatFillsTheWindowIsMadeToFit: every condenser but noop makes a single tool loop fit, in one try.
func TestLoopThatFillsTheWindowIsMadeToFit(t *testing.T) {
	steps := 60
	if testing.Short() {
		steps = 25
	}
	for name, c := range map[string]condense.Condenser{
		"window": condense.ConversationWindow{}, "masking": condense.ObservationMasking{AttentionWindow: 1000}, "llm": onRequest(),
		"recent": condense.RecentEvents{KeepFirst: 1, MaxEvents: 1000}, "trim": condense.ToolOutputTrim{},
		"forgetting": condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}},
	} {
		r := condensing(t, setup{upstream: fakeupstream.Options{ContextWindow: 8000}, condenser: c})
		history := []string{say("user", "work")}
		for i := range steps {
			history = append(history, calls(fmt.Sprint(i), 1+i%3, 40)...)
			before := r.refusals()
			if resp, body := r.ask(messages(history...)); resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: step %d: %s: %s", name, i, resp.Status, body)
			}
			if n := r.refusals() - before; n > 1 {
				t.Errorf("%s: step %d: %d refusals", name, i, n)
			}
		}
	}
}
