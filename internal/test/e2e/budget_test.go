package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// budgeted writes a configuration with budgets.
func (s *setting) budgeted(t *testing.T, store, limits string) string {
	return writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
models: {priced: {context_window: 100000, max_output: 1000, price: {input: 10, output: 100}}}
condenser: {type: excerpts, max_size: 1000}
limits: {tenant: {%s}}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, store, limits))
}

// outcome is the outcome of a request.
type outcome struct {
	http.Header
	status int
	text   string
}

// try sends a request, which may be refused.
func try(t *testing.T, p *process, path, session string, body any) (o outcome) {
	t.Helper()
	req, a := post(t, p, encode(body))
	req.URL.Path = "/v1" + path
	req.Header.Set("X-Dewpoint-Session", session)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(t, err)
	return outcome{resp.Header, resp.StatusCode, string(text)}
}

func asked(model, text string) map[string]any {
	return map[string]any{"model": model, "max_tokens": 100, "messages": []any{map[string]any{"role": "user", "content": text}}}
}

// TestBudgetsOverReplicas: 40 sessions near the limit of their budgets, each with eight concurrent requests over two replicas. No
// session exceeds its budget by more than one request, and each can spend all of it.
func TestBudgetsOverReplicas(t *testing.T) {
	const sessions, budget, prompt, answer = 40, 1500, 300, 100
	var mu sync.Mutex
	spent, number := map[string]int{}, regexp.MustCompile(`session (\d+) `)
	s := newSetting(t, fakeupstream.Options{Keep: 1, Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		mu.Lock()
		defer mu.Unlock()
		spent[number.FindStringSubmatch(string(r.Body))[1]] += prompt + answer
		return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: prompt, Completion: answer}}
	}})
	config := s.budgeted(t, inRedis(sessiontest.StartRedis(t).Addr), fmt.Sprintf("session_budget: {tokens: %d, period: 720h}", budget))
	pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
	var all sync.WaitGroup
	for n := range sessions {
		all.Go(func() {
			for spentNow := false; !spentNow && !t.Failed(); {
				var round sync.WaitGroup
				got := make([]outcome, 8)
				for i := range got {
					round.Go(func() {
						text := fmt.Sprintf("session %d asks %d: %s", n, i, strings.Repeat("some more of it, ", prompt/5))
						got[i] = try(t, pair[i%2], "/chat/completions", fmt.Sprint("session-", n), asked("gpt-4o", text))
					})
				}
				round.Wait()
				for _, o := range got {
					if o.status != http.StatusOK && (o.status != http.StatusTooManyRequests || !strings.Contains(o.text, "limits.session_budget")) {
						t.Errorf("session %d: %d %s", n, o.status, o.text)
					}
					spentNow = spentNow || strings.Contains(o.text, "is spent")
				}
			}
		})
	}
	all.Wait()
	if len(spent) != sessions {
		t.Errorf("%d sessions", len(spent))
	}
	for n, tokens := range spent {
		if tokens < budget || tokens >= budget+prompt+answer {
			t.Errorf("session %s spent %d tokens of %d", n, tokens, budget)
		}
	}
}

// TestBudgetInDollars: the error about a tenant's budget has the format of each protocol, spending survives the process, and a
// model without a price does not count, which is logged.
func TestBudgetInDollars(t *testing.T) {
	s := newSetting(t, fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 1000, Completion: 100}} // 0.02 USD
	}})
	config := s.budgeted(t, embedded(newStore(t)), "budget: {usd: 0.05, period: 8784h}")
	p := serve(t, "--config", config)
	for n := range 3 {
		if o := try(t, p, "/chat/completions", fmt.Sprint(n), asked("priced", "Hello.")); o.status != http.StatusOK {
			t.Fatalf("request %d: %d %s", n, o.status, o.text)
		}
	}
	p.terminate()
	p.wait()
	p = serve(t, "--config", config)
	for path, want := range map[string]string{
		"/chat/completions": `{"error":{"message":`, "/messages": `{"type":"error","error":{"type":"rate_limit_error"`, "/responses": `{"error":{"message":`,
	} {
		request := asked("priced", "Hello.")
		if path == "/responses" {
			request = map[string]any{"model": "priced", "input": "Hello."}
		}
		o := try(t, p, path, "another", request)
		if o.status != http.StatusTooManyRequests || !strings.HasPrefix(o.text, want) || !strings.Contains(o.text, `"code":"budget_spent"`) ||
			!strings.Contains(o.text, "limits.budget is spent: 0.06 of 0.05 USD") || o.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, o.status, o.text)
		}
	}
	for range 2 {
		if o := try(t, p, "/chat/completions", "another", asked("without-a-price", "Hello.")); o.status != http.StatusOK {
			t.Errorf("a model without a price: %d %s", o.status, o.text)
		}
	}
	if n := strings.Count(p.log.String(), "a budget in dollars does not count this model"); n != 1 {
		t.Errorf("the log says %d times that a model has no price", n)
	}
	for _, dialect := range []string{"chat", "messages", "responses"} {
		series := fmt.Sprintf(`dewpoint_requests_total{code="budget_spent",dialect=%q,model="priced",status="4xx",tenant="default"} 1`, dialect)
		if !strings.Contains(strings.Join(p.metrics(), "\n"), series) {
			t.Errorf("the metrics have no %s", series)
		}
	}
}

// TestBudgetCondensesFirst: when little of the budget is left, histories are condensed earlier; after that, requests are refused.
func TestBudgetCondensesFirst(t *testing.T) {
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: len(r.Body) / 4, Completion: 10}}
	}})
	p := serve(t, "--config", s.budgeted(t, embedded(newStore(t)), "session_budget: {tokens: 400000, period: 720h, then: condense}"))
	messages := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Begin."})}
	condensedAt, refusedAt := 0, 0
	for n := 1; n < 200 && refusedAt == 0; n++ {
		o := try(t, p, "/chat/completions", "one", map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages})
		switch {
		case o.status == http.StatusTooManyRequests && strings.Contains(o.text, "session_budget"):
			refusedAt = n
		case o.status != http.StatusOK:
			t.Fatalf("request %d: %d %s", n, o.status, o.text)
		case condensedAt == 0 && strings.HasPrefix(o.Get("X-Dewpoint-Condensed"), "request"):
			condensedAt = n
		}
		messages = append(messages, encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d. %s", n, strings.Repeat("more of it ", 300))}),
			encode(map[string]string{"role": "user", "content": fmt.Sprint("Go on ", n)}))
	}
	if condensedAt == 0 || refusedAt < condensedAt+5 {
		t.Errorf("condensed at %d, refused at %d", condensedAt, refusedAt)
	}
}

// TestBudgetWithoutStore: while the store is unavailable, budgets do not apply, and this is counted and logged.
func TestBudgetWithoutStore(t *testing.T) {
	redis := sessiontest.StartRedis(t)
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.budgeted(t, inRedis(redis.Addr), "budget: {tokens: 1, period: 720h}"))
	if o := try(t, p, "/chat/completions", "one", asked("gpt-4o", "Hello.")); o.status != http.StatusOK {
		t.Fatalf("%d %s", o.status, o.text)
	}
	if o := try(t, p, "/chat/completions", "one", asked("gpt-4o", "Hello.")); o.status != http.StatusTooManyRequests {
		t.Fatalf("%d %s", o.status, o.text)
	}
	redis.Kill()
	if o := try(t, p, "/chat/completions", "one", asked("gpt-4o", "Hello.")); o.status != http.StatusOK {
		t.Errorf("%d %s", o.status, o.text)
	}
	if !strings.Contains(strings.Join(p.metrics(), "\n"), `dewpoint_store_losses_total{op="budget"} 1`) {
		t.Error("a request that no budget was asked for is not counted")
	}
}

// TestBudgetsCountSummariesInVain: the cost of unusable summaries counts towards the tenant's budget.
func TestBudgetsCountSummariesInVain(t *testing.T) {
	s := newSetting(t, fakeupstream.Options{
		Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 1, Completion: 1}}
		},
		IsSummary: func(r *fakeupstream.Request) bool { return strings.Contains(r.Text(), "You keep the record of") },
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 90_000, Completion: 10_000}}
		},
	})
	p := serve(t, "--config", s.writeWith(t, embedded(newStore(t)), "llm_config: cheap, max_size: 12, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0",
		"limits: {tenant: {budget: {tokens: 100000, period: 8784h}}}"))
	messages := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Begin."})}
	for n := range 20 {
		o := try(t, p, "/chat/completions", "one", map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages})
		if o.status == http.StatusTooManyRequests && strings.Contains(o.text, "limits.budget is spent") {
			return
		}
		if o.status != http.StatusOK {
			t.Fatalf("request %d: %d %s", n, o.status, o.text)
		}
		messages = append(messages, encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d. %s", n, strings.Repeat("more of it ", 100))}),
			encode(map[string]string{"role": "user", "content": fmt.Sprint("Go on ", n)}))
	}
	t.Error("the budget was not spent")
}

// TestSpentBudgetsBuyNoSummaries: requests that are refused because their budget is spent cause no calls of the summariser either, whether
// they would have waited for the summary or not.
func TestSpentBudgetsBuyNoSummaries(t *testing.T) {
	for name, wait := range map[string]string{"deadline": "wait: deadline, deadline: 1m, background_at: 0", "never": "wait: never, background_at: 0.5"} {
		t.Run(name, func(t *testing.T) {
			var summaries atomic.Int32
			summarised := make(chan struct{}, 100)
			s := newSetting(t, fakeupstream.Options{
				Reply: func(*fakeupstream.Request) fakeupstream.Answer {
					return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 1, Completion: 1}}
				},
				IsSummary: func(r *fakeupstream.Request) bool { return strings.Contains(r.Text(), "You keep the record of") },
				Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
					summaries.Add(1)
					defer func() { summarised <- struct{}{} }()
					return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 90_000, Completion: 20_000}}
				},
			})
			p := serve(t, "--config", s.writeWith(t, embedded(newStore(t)), "llm_config: cheap, max_size: 12, min_tokens: 0, "+wait,
				"limits: {tenant: {budget: {tokens: 100000, period: 8784h}}}"))
			conversation := func(n int) map[string]any {
				messages := []json.RawMessage{encode(map[string]string{"role": "user", "content": fmt.Sprint("Begin ", n)})}
				for i := range 8 {
					messages = append(messages,
						encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d. %s", i, strings.Repeat("more of it ", 100))}),
						encode(map[string]string{"role": "user", "content": fmt.Sprint("Go on ", i)}))
				}
				return map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages}
			}
			for _, length := range []int{1, 17} { // a history that was sent once is not summarised in the background
				asked := conversation(0)
				asked["messages"] = asked["messages"].([]json.RawMessage)[:length]
				try(t, p, "/chat/completions", "first", asked)
			}
			<-summarised
			for try(t, p, "/chat/completions", "short", asked("gpt-4o", "Hello.")).status == http.StatusOK { // the summary is not charged yet
			}
			for n := range 5 {
				o := try(t, p, "/chat/completions", fmt.Sprint("session ", n), conversation(n))
				if o.status != http.StatusTooManyRequests || !strings.Contains(o.text, "limits.budget is spent") {
					t.Errorf("request %d: %d %s", n, o.status, o.text)
				}
			}
			p.terminate()
			p.wait()
			if n := summaries.Load(); n != 1 {
				t.Errorf("%d summaries were bought, want 1: for the request that was served", n)
			}
		})
	}
}

// TestBudgetsAreShown: the metrics and the admin API of each replica show what is spent and held of budgets over all of them, in calendar
// periods and periods of days.
func TestBudgetsAreShown(t *testing.T) {
	answer := make(chan struct{})
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		a := fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 1000, Completion: 100}} // 0.02 USD
		if strings.Contains(string(r.Body), "wait for it") {
			a.Fault.HoldHeaders = answer
		}
		return a
	}})
	config := s.budgeted(t, inRedis(sessiontest.StartRedis(t).Addr),
		"budget: {usd: 5, tokens: 100000, period: month}, session_budget: {tokens: 50000, period: 30d}")
	p, other := serve(t, "--config", config), serve(t, "--config", config)
	var session string
	for _, p := range []*process{p, other} {
		o := try(t, p, "/chat/completions", "one", asked("priced", "Hello."))
		if o.status != http.StatusOK {
			t.Fatalf("%d %s", o.status, o.text)
		}
		session = o.Get("X-Dewpoint-Session")
	}
	type budget struct {
		Tenant, Unit, Period string
		Limit, Spent, Held   float64
		Begin, End           time.Time
	}
	shown := func(p *process, path string) (all []budget) {
		t.Helper()
		var list struct{ Budgets []budget }
		ok(t, json.Unmarshal(p.administer(http.MethodGet, path, http.StatusOK), &list))
		return list.Budgets
	}
	wantMetric := func(p *process, line string) {
		t.Helper()
		sessiontest.Eventually(t, line, func() error {
			all := strings.Join(p.metrics(), "\n")
			if !strings.Contains(all, line+"\n") {
				return errors.New("the metrics differ")
			}
			return nil
		})
	}
	wantMetric(p, `dewpoint_budget_spent{tenant="default",unit="tokens"} 2200`)
	wantMetric(other, `dewpoint_budget_spent{tenant="default",unit="usd"} 0.04`)
	wantMetric(p, `dewpoint_budget_limit{tenant="default",unit="usd"} 5`)
	wantMetric(p, `dewpoint_budget_held{tenant="default",unit="tokens"} 0`)

	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	want := []budget{
		{"default", "tokens", "month", 100000, 2200, 0, month, month.AddDate(0, 1, 0)},
		{"default", "usd", "month", 5, 0.04, 0, month, month.AddDate(0, 1, 0)},
	}
	if got := shown(other, "/budgets"); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got := shown(p, "/sessions/"+session+"/budgets")
	if len(got) != 1 || got[0].Spent != 2200 || got[0].Limit != 50000 || got[0].End.Sub(got[0].Begin) != 720*time.Hour || got[0].Begin.After(now) {
		t.Errorf("of the session: %+v", got)
	}
	left := sendAside(t, p, encode(asked("priced", "wait for it")))
	sessiontest.Eventually(t, "the other replica shows what is held", func() error {
		b := shown(other, "/budgets")[1]
		if b.Held < 0.01 || b.Held > 0.02 || b.Spent <= 0.04 { // 100 tokens of an answer for 0.01 USD, and a quarter of the prompt
			return fmt.Errorf("%+v", b)
		}
		return nil
	})
	close(answer)
	<-left
	wantMetric(other, `dewpoint_budget_held{tenant="default",unit="usd"} 0`)
	wantMetric(other, `dewpoint_budget_spent{tenant="default",unit="usd"} 0.06`)
}
