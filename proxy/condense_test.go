package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// cheapModel is the model that writes summaries in these tests.
const cheapModel = "cheap"

// llm condenses histories of more than ten events, or more than max tokens, with a model at base. An empty base is the request's own
// upstream.
func llm(max float64, base string, timeout time.Duration) *condense.LLM {
	return llmWith(healthAt(time.Now), max, base, timeout)
}

// healthAt returns the health of models with a given clock.
func healthAt(now func() time.Time) *summariser.Health {
	return summariser.NewHealth(now)
}

func llmWith(health condense.Health, max float64, base string, timeout time.Duration) *condense.LLM {
	return condense.NewLLM(condense.LLMSettings{
		Health:     health,
		Settings:   condense.Settings{MaxSize: 10, MaxTokens: max, KeepFirst: 1, MinimumProgress: 0.1},
		Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: timeout},
		Endpoint:   condense.Endpoint{BaseURL: base}, Model: cheapModel,
	})
}

// turns is a conversation of n messages, with a system prompt before them.
func turns(topic string, n int) []string {
	all := []string{say("system", "You help with "+topic+".")}
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		all = append(all, say(role, fmt.Sprintf("%s %d %s", topic, i, strings.Repeat("and so on ", 40))))
	}
	return all
}

// condensing is a rig that condenses above ten events.
func condensing(t *testing.T, s setup) *rig {
	t.Helper()
	s.upstream.SummariserModels = []string{cheapModel}
	if s.condenser == nil {
		s.condenser = llm(0, "", patience)
	}
	return newRig(t, s)
}

// forwarded returns the last request upstream that is not a summariser's.
func (r *rig) forwarded() fakeupstream.Request {
	r.t.Helper()
	for _, req := range slices.Backward(r.up.Requests()) {
		if !req.Summary && req.Model != cheapModel {
			return req
		}
	}
	r.t.Fatal("nothing was forwarded")
	return fakeupstream.Request{}
}

// wantUnchanged sends a body and checks that it goes upstream unchanged.
func (r *rig) wantUnchanged(body string, header ...string) *http.Response {
	r.t.Helper()
	resp, answer := r.ask(body, header...)
	if resp.StatusCode != http.StatusOK {
		r.t.Errorf("status %d, %s", resp.StatusCode, answer)
	}
	if got := r.forwarded(); string(got.Body) != body {
		r.t.Errorf("forwarded %.200s ... (%d bytes), want %d bytes unchanged", got.Body, len(got.Body), len(body))
	}
	return resp
}

// wantCondensed sends a body and checks that fewer messages go upstream.
func (r *rig) wantCondensed(body string, header ...string) *http.Response {
	r.t.Helper()
	resp, answer := r.ask(body, header...)
	if resp.StatusCode != http.StatusOK {
		r.t.Errorf("status %d, %s", resp.StatusCode, answer)
	}
	if got := r.forwarded(); len(got.Body) >= len(body) || !strings.Contains(string(got.Body), "dewpoint_record") {
		r.t.Errorf("forwarded %.300s ... (%d bytes), want it condensed from %d", got.Body, len(got.Body), len(body))
	}
	return resp
}

func TestCondensation(t *testing.T) {
	r := condensing(t, setup{})
	below := r.wantUnchanged(messages(turns("ships", 9)...)) // ten events: at the limit, not above
	first := r.wantCondensed(messages(turns("ships", 11)...))
	if got := first.Header.Get("X-Dewpoint-Condensed"); !strings.HasPrefix(got, "events; ") {
		t.Errorf("condensed %q", got)
	}
	for _, name := range []string{"X-Dewpoint-Session", "X-Dewpoint-Thread"} {
		if got := first.Header.Get(name); got == "" || got != below.Header.Get(name) {
			t.Errorf("%s %q, before %q", name, got, below.Header.Get(name))
		}
	}
	if got := below.Header.Get("X-Dewpoint-Events"); got != "10;10" {
		t.Errorf("events %s", got)
	}
	var before, after, tokens, less int
	_, err := fmt.Sscanf(first.Header.Get("X-Dewpoint-Events")+" "+first.Header.Get("X-Dewpoint-Tokens"), "%d;%d %d;%d", &before, &after, &tokens, &less)
	if err != nil || before != 12 || after != len(r.forwarded().Messages) || less >= tokens || less <= 0 {
		t.Errorf("events %d;%d tokens %d;%d, %v", before, after, tokens, less, err)
	}
	prefix := r.forwarded().Messages
	again := r.wantCondensed(messages(turns("ships", 13)...)) // the same condensation, applied once more
	if calls := r.up.SummariserCalls(); calls != 1 || again.Header.Get("X-Dewpoint-Condensed") != "" {
		t.Errorf("%d calls of the summariser, condensed %q", calls, again.Header.Get("X-Dewpoint-Condensed"))
	}
	for i, m := range prefix {
		if got := r.forwarded().Messages[i]; string(got) != string(m) {
			t.Errorf("message %d of the forwarded prefix changed: %s", i, got)
		}
	}
}

func TestCondenseOff(t *testing.T) {
	observed := &calibration{}
	r := condensing(t, setup{tokens: observed})
	r.wantUnchanged(messages(turns("ships", 11)...), "X-Dewpoint-Condense", "off")
	r.wantCondensed(messages(turns("ships", 13)...))
	resp := r.wantUnchanged(messages(turns("ships", 15)...), "X-Dewpoint-Condense", "OFF")
	if got := resp.Header.Get("X-Dewpoint-Events"); got != "16;16" {
		t.Errorf("events %s", got)
	}
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
	if ratio := observed.worst(); ratio == 0 || ratio > 1.3 {
		t.Errorf("calibrated by %v: upstream's count of the whole against ours of a part", ratio)
	}
}

// TestIgnoredHeaders: an answer names the headers of the request whose values have no meaning.
func TestIgnoredHeaders(t *testing.T) {
	r := condensing(t, setup{})
	f := func(want string, header ...string) {
		t.Helper()
		resp := r.wantUnchanged(messages(turns("ships", 3)...), header...)
		if got := strings.Join(resp.Header.Values("X-Dewpoint-Ignored"), ", "); got != want {
			t.Errorf("%q: ignored %q, want %q", header, got, want)
		}
	}
	f("", "X-Dewpoint-Condense", "Off", "X-Dewpoint-Session", "a")
	f("X-Dewpoint-Condense", "X-Dewpoint-Condense", "yes")
	f("X-Dewpoint-Session, X-Dewpoint-Condense", "X-Dewpoint-Condense", "yes", "X-Dewpoint-Session", strings.Repeat("a", 300))
}

func TestCondenseNow(t *testing.T) {
	r := condensing(t, setup{})
	resp := r.wantCondensed(messages(turns("ships", 9)...), "X-Dewpoint-Condense", "now")
	if got := resp.Header.Get("X-Dewpoint-Condensed"); !strings.HasPrefix(got, "request; ") {
		t.Errorf("condensed %q", got)
	}
	if got := r.forwarded().Header.Get("X-Dewpoint-Condense"); got != "" {
		t.Errorf("the wish went upstream: %q", got)
	}
	r.wantUnchanged(messages(turns("planes", 1)...), "X-Dewpoint-Condense", "now") // nothing to forget
	r.wantUnchanged(messages(turns("trains", 5)...), "X-Dewpoint-Condense", "maybe")
}

func TestObserve(t *testing.T) {
	r := condensing(t, setup{tenants: one(func(tenant *proxy.Tenant) {
		tenant.Observe, tenant.Condenser = true, llm(0, "", patience)
	})})
	r.wantUnchanged(messages(turns("ships", 9)...))
	r.atEnd(`dewpoint_condensations_total{condenser="llm",outcome="observed",reason="events",tenant="default"}`, 1)
	r.wantUnchanged(messages(turns("ships", 11)...))
}

// calibration keeps the ratio that is furthest from 1.
type calibration struct {
	quarters
	mu    sync.Mutex
	ratio float64
}

func (c *calibration) Counter(string) engine.Counter { return quarters{} }

func (c *calibration) Observe(_ string, counted, actual int, _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ratio = max(c.ratio, float64(actual)/float64(counted))
}

func (c *calibration) worst() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ratio
}

// bad lists the ways in which a summariser fails.
func bad() map[string]fakeupstream.Answer {
	return map[string]fakeupstream.Answer{
		"error 500":    fakeupstream.ServerError(),
		"rate limited": fakeupstream.RateLimited("5"),
		"gateway":      fakeupstream.BadGateway(),
		"denied":       {Error: &fakeupstream.APIError{Status: 401, Message: "bad key " + keyMark + "quoted"}},
		"slow":         {Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}},
		"slow body":    {Content: "x", Fault: fakeupstream.Fault{Hold: make(chan struct{})}},
		"reset":        {Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: -1}},
		"cut off":      {Content: "x", Fault: fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 1}},
		"empty":        {Content: ""},
		"blank":        {Content: " \n"},
		"refusing":     {Content: "I'm sorry, but I can't help with that."},
		"refusal":      {Refusal: "no"},
		"truncated":    {Content: "The user wants", FinishReason: "length"},
		"inflated":     {Content: "DONE: " + strings.Repeat("and then some more happened ", 2000)},
		"no JSON":      {Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte("{")}},
		"no choices":   {Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte(`{"choices":[]}`)}},
	}
}

// summariserTimeout is long enough for the tests' own summariser, and short enough to wait for.
const summariserTimeout = 2 * time.Second

func TestSummariserFailsSoft(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for name, answer := range bad() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := condensing(t, setup{
				condenser: llm(0, "", summariserTimeout),
				upstream:  fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return answer }},
			})
			resp := r.wantUnchanged(messages(turns("ships", 11)...), "Authorization", "Bearer "+keyMark+"client")
			if resp.Header.Get("X-Dewpoint-Condense-Failed") == "" {
				t.Error("the client is not told")
			}
			r.wantUnchanged(messages(turns("ships", 13)...), "Authorization", "Bearer "+keyMark+"client")
			if calls := r.up.SummariserCalls(); calls < 1 || calls > 2 {
				t.Errorf("%d calls of the summariser: it is to be left alone after it failed", calls)
			}
			if n := r.metric(`dewpoint_condensations_total{condenser="llm",outcome="failed",reason="events",tenant="default"}`); n != 1 {
				t.Errorf("counted %v times\n%s", n, r.scrape())
			}
		})
	}
}

// windowOf gives every model a context window of that many tokens.
func windowOf(tokens int) func(string) proxy.ModelInfo {
	return func(string) proxy.ModelInfo { return proxy.ModelInfo{Model: engine.Model{Window: tokens}} }
}

// TestRequestOverTheWindowIsShortenedIfTheSummariserFails: a request that upstream would refuse is shortened even if the summariser, which is tried once each time, fails.
func TestRequestOverTheWindowIsShortenedIfTheSummariserFails(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for name, answer := range bad() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := condensing(t, setup{
				condenser: llm(0, "", summariserTimeout), models: windowOf(800),
				upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return answer }},
			})
			resp := r.wantCondensed(messages(turns("ships", 9)...))
			if got := resp.Header.Get("X-Dewpoint-Condensed"); !strings.HasPrefix(got, "window; ") {
				t.Errorf("condensed %q", got)
			}
			calls := r.up.SummariserCalls()
			r.wantCondensed(messages(turns("ships", 19)...))
			want := 1
			if name == "denied" {
				want = 0 // the request's own model is asked instead
			}
			if more := r.up.SummariserCalls() - calls; calls < 1 || calls > 2 || more != want {
				t.Errorf("%d calls of the summariser, then %d more", calls, more)
			}
		})
	}
}

// TestNothingIsForgottenWithoutASummaryFarBelowTheWindow: a token limit or a client's request for condensing is no emergency. If there is no summary, the
// request is forwarded unchanged.
func TestNothingIsForgottenWithoutASummaryFarBelowTheWindow(t *testing.T) {
	failing := fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return fakeupstream.ServerError() }}
	r := condensing(t, setup{condenser: llm(800, "", patience), upstream: failing, models: windowOf(128000)})
	r.wantUnchanged(messages(turns("ships", 9)...))
	r.wantUnchanged(messages(turns("ships", 19)...))
	r = condensing(t, setup{upstream: failing, models: windowOf(128000)})
	for range 3 {
		r.wantUnchanged(messages(turns("ships", 9)...), "X-Dewpoint-Condense", "now")
	}
	if calls := r.up.SummariserCalls(); calls != 3 {
		t.Errorf("%d calls of the summariser, want one for each wish", calls)
	}
}

func TestSummariserDown(t *testing.T) {
	r := condensing(t, setup{condenser: llm(0, "http://127.0.0.1:1/v1", patience)})
	r.wantUnchanged(messages(turns("ships", 11)...))
	hard := condensing(t, setup{condenser: llm(0, "http://127.0.0.1:1/v1", patience), models: windowOf(800)})
	hard.wantCondensed(messages(turns("ships", 9)...))
}

// TestFailuresOfOneClientAffectNoOther: failures of the summariser for one client's key or history do not keep other clients from their summaries.
func TestFailuresOfOneClientAffectNoOther(t *testing.T) {
	denied := fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusUnauthorized, Message: "bad key"}}
	for name, answer := range map[string]fakeupstream.Answer{"its key": denied, "its content": {Refusal: "no"}} {
		t.Run(name, func(t *testing.T) {
			r := condensing(t, setup{upstream: fakeupstream.Options{Summarise: func(req *fakeupstream.Request) fakeupstream.Answer {
				if strings.Contains(string(req.Body), "ships") {
					return answer
				}
				return fakeupstream.Answer{Content: "DISCUSSED: they spoke of tea."}
			}}})
			for _, n := range []int{11, 13, 15} {
				r.wantUnchanged(messages(turns("ships", n)...), "Authorization", "Bearer one")
			}
			if calls := r.up.SummariserCalls(); calls != 1 {
				t.Errorf("%d calls of the summariser for a history that it failed on", calls)
			}
			resp := r.wantCondensed(messages(turns("tea", 11)...), "Authorization", "Bearer two")
			if resp.Header.Get("X-Dewpoint-Condensed") == "" {
				t.Error("another client's history is not condensed")
			}
		})
	}
}

func TestSummariserRecovers(t *testing.T) {
	answers := make(chan fakeupstream.Answer, 2)
	clock := &clock{now: time.Now()}
	r := condensing(t, setup{now: clock.Now, condenser: llmWith(healthAt(clock.Now), 0, "", patience), upstream: fakeupstream.Options{
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return <-answers },
	}})
	answers <- fakeupstream.ServerError()
	r.wantUnchanged(messages(turns("ships", 11)...))
	clock.pass(summariser.FirstCooldown - time.Second)
	r.wantUnchanged(messages(turns("ships", 13)...))
	clock.pass(2 * time.Second)
	answers <- fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships."}
	r.wantCondensed(messages(turns("ships", 15)...))
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestSummaryOutlivesItsClient: a client that gives up before the summariser has answered finds the summary when it tries again, and the
// summariser was called once.
func TestSummaryOutlivesItsClient(t *testing.T) {
	hold := make(chan struct{})
	r := condensing(t, setup{upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
	}}})
	named := func(n int) string {
		return strings.Replace(messages(turns("ships", n)...), "{", `{"session_id":"ships",`, 1)
	}
	body := named(11)
	r.wantUnchanged(named(9))
	for range 3 {
		w := r.dial()
		w.post(body)
		_, err := r.up.WaitFor(guard(t), func(all []fakeupstream.Request) bool { return len(all) == 2 && all[1].Summary })
		must(t, err)
		w.Close()
	}
	w := r.dial()
	w.post(body)
	close(hold)
	if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if got := r.forwarded(); string(got.Body) == body {
		t.Error("the summary was not there for the retry")
	}
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
}

// TestNoRequestWaitsLongerThanItsDeadline: a soft condensation that takes longer goes on for the next request.
func TestNoRequestWaitsLongerThanItsDeadline(t *testing.T) {
	hold, unlocked := make(chan struct{}), make(chan struct{}, 1)
	r := condensing(t, setup{
		upstream: summarisesLate(hold),
		store:    func(s session.Store) session.Store { return unlocking{s, unlocked} },
		tenants:  one(func(t *proxy.Tenant) { t.Condenser, t.Deadline = llm(0, "", patience), time.Millisecond }),
	})
	resp := r.wantUnchanged(messages(turns("ships", 11)...))
	if got := resp.Header.Get("X-Dewpoint-Condense-Failed"); got != "deadline" {
		t.Errorf("told %q", got)
	}
	close(hold)
	<-unlocked
	r.wantCondensed(messages(turns("ships", 13)...))
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
}

// TestNoRequestWaits: a condensation that is due is done at once with excerpts, which does not count as a failure. The summary is written
// later.
func TestNoRequestWaits(t *testing.T) {
	hold, unlocked := make(chan struct{}), make(chan struct{}, 2)
	r := condensing(t, setup{
		upstream: summarisesLate(hold),
		store:    func(s session.Store) session.Store { return unlocking{s, unlocked} },
		tenants:  one(func(t *proxy.Tenant) { t.Condenser, t.Never, t.Ahead = llm(0, "", patience), true, true }),
	})
	r.wantUnchanged(messages(turns("ships", 3)...)) // a summary is written only for a history that came back
	resp := r.wantCondensed(messages(turns("ships", 11)...))
	if told, failed := resp.Header.Get("X-Dewpoint-Condensed"), resp.Header.Get("X-Dewpoint-Condense-Failed"); !strings.HasSuffix(told, "; excerpts") || failed != "" {
		t.Errorf("told %q, failed %q", told, failed)
	}
	close(hold)
	for range 2 { // the excerpts' lock, and the summary's
		<-unlocked
	}
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
	r.wait(func() bool { return r.ended("prepared") == 1 })
	if n := r.ended("fallback"); n != 1 || r.ended("failed")+r.ended("condensed") != 0 {
		t.Errorf("%v condensations by excerpts, %v failed", n, r.ended("failed"))
	}
	for said, cause := range map[string]any{"condensed without a summary": "at_once", "summary prepared": nil} {
		if line := r.line(said, 1); line["cause"] != cause || line["attempts"] == nil {
			t.Errorf("%s: %v", said, line)
		}
	}
}

// TestHistorySentOnceIsNotSummarised: agents send some histories once, such as those of planning steps. Such a history gets excerpts, which
// cost nothing. No model is called for it until it has come back.
func TestHistorySentOnceIsNotSummarised(t *testing.T) {
	r := condensing(t, setup{tenants: one(func(t *proxy.Tenant) { t.Condenser, t.Never, t.Ahead = llm(0, "", patience), true, true })})
	for _, plan := range []string{"ships", "planes", "trains"} {
		r.wantCondensed(messages(turns(plan, 11)...))
	}
	r.wantUnchanged(messages(turns("cars", 3)...))
	r.wantCondensed(messages(turns("cars", 11)...))
	r.wait(func() bool { return r.ended("prepared") >= 1 })
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
}

// ended returns how many condensations of the rig's usual condenser had an outcome.
func (r *rig) ended(outcome string) float64 {
	return r.metric(`dewpoint_condensations_total{condenser="llm",outcome="` + outcome + `",reason="events",tenant="default"}`)
}

// TestSummaryThatCannotBePreparedIsNoFailure: a summary that cannot be prepared is not a failed condensation.
func TestSummaryThatCannotBePreparedIsNoFailure(t *testing.T) {
	answer := bad()["error 500"]
	r := condensing(t, setup{
		upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return answer }},
		tenants:  one(func(t *proxy.Tenant) { t.Condenser, t.Never, t.Ahead = llm(0, "", patience), true, true }),
	})
	r.wantUnchanged(messages(turns("ships", 3)...))
	r.wantCondensed(messages(turns("ships", 11)...))
	r.wait(func() bool { return r.ended("not_prepared") == 1 })
	if r.ended("failed") != 0 {
		t.Error("it counts as a failed condensation")
	}
	if line := r.line("summary not prepared", 1); line["cause"] != "server" {
		t.Errorf("%v", line)
	}
}

// summarisesLate is an upstream whose summariser answers once hold is closed.
func summarisesLate(hold chan struct{}) fakeupstream.Options {
	return fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
	}}
}

// TestAnswersDuringALateCondensation: an answer that the model gives during a condensation is bound to the earlier history. Upstream refuses
// a seal whose prefix has changed.
func TestAnswersDuringALateCondensation(t *testing.T) {
	hold := make(chan struct{})
	unlocked := make(chan struct{}, 1)
	r := condensing(t, setup{
		upstream: fakeupstream.Options{
			Seals: fakeupstream.SealThinkingBlocks,
			Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
				return fakeupstream.Answer{Content: "DISCUSSED: ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
			},
		},
		store:   func(s session.Store) session.Store { return unlocking{s, unlocked} },
		tenants: one(func(t *proxy.Tenant) { t.Condenser, t.Deadline = llm(0, "", patience), time.Millisecond }),
	})
	history := []string{say("system", "You help.")}
	ask := func() *http.Response {
		history = append(history, say("user", fmt.Sprintf("question %d %s", len(history), strings.Repeat("and so on ", 40))))
		resp, answer := r.ask(strings.Replace(messages(history...), "{", `{"session_id":"ships",`, 1))
		var a struct {
			Choices []struct{ Message json.RawMessage }
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d messages: %s, %v", len(history), answer, err)
		}
		history = append(history, string(a.Choices[0].Message))
		return resp
	}
	for len(history) < 15 {
		ask()
	}
	close(hold)
	<-unlocked
	for range 3 {
		ask()
	}
	if got := len(r.forwarded().Messages); got >= len(history)-1 {
		t.Errorf("%d of %d messages forwarded: nothing was condensed", got, len(history)-1)
	}
}

// unlocking is a store that reports when a lock was released, unless earlier reports wait to be received.
type unlocking struct {
	session.Store
	done chan<- struct{}
}

func (u unlocking) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	lease, err := u.Store.Lock(ctx, id, ttl)
	return session.Lease{Renew: lease.Renew, Release: func() {
		lease.Release()
		select {
		case u.done <- struct{}{}:
		default:
		}
	}}, err
}

// TestOtherRequestsOfAThreadDoNotWaitForItsSummary has two requests of one thread: one condenses, the other does not wait for it.
func TestOtherRequestsOfAThreadDoNotWaitForItsSummary(t *testing.T) {
	hold := make(chan struct{})
	r := condensing(t, setup{upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
	}}})
	r.wantUnchanged(messages(turns("ships", 9)...))
	w := r.dial()
	w.post(messages(turns("ships", 11)...))
	_, err := r.up.Wait(guard(t), 2)
	must(t, err)
	r.wantUnchanged(messages(turns("ships", 13)...))
	close(hold)
	if resp, _ := w.answer(http.MethodPost); resp.Header.Get("X-Dewpoint-Condensed") == "" {
		t.Error("the first one was not condensed")
	}
	r.wantCondensed(messages(turns("ships", 15)...))
	if calls := r.up.SummariserCalls(); calls != 1 {
		t.Errorf("%d calls of the summariser, want 1", calls)
	}
}
