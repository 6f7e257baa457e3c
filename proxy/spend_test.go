package proxy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// overheard is a store that records its charges and settlements.
type overheard struct {
	session.Store
	fails error // of Reserve, which is done all the same

	mu      sync.Mutex
	charges []session.Charge
	entries []session.Entry
}

func (o *overheard) Reserve(ctx context.Context, id string, charges []session.Charge) (session.Reserved, error) {
	o.mu.Lock()
	o.charges = append(o.charges, charges...)
	o.mu.Unlock()
	got, err := o.Store.Reserve(ctx, id, charges)
	return got, errors.Join(err, o.fails)
}

func (o *overheard) Enter(ctx context.Context, e session.Entry) error {
	o.mu.Lock()
	o.entries = append(o.entries, e)
	o.mu.Unlock()
	return o.Store.Enter(ctx, e)
}

// pricedRig has a model with a price, and a store that is recorded.
func pricedRig(t *testing.T, o *overheard, up fakeupstream.Options, change func(*proxy.Tenant)) *rig {
	return newRig(t, setup{
		upstream: up, tenants: one(change), store: func(s session.Store) session.Store { o.Store = s; return o },
		models: func(name string) proxy.ModelInfo {
			return proxy.ModelInfo{Model: engine.Model{Name: name, MaxOutput: 1000}, Price: model.Price{Input: 3, Output: 15}}
		},
	})
}

func inTokens(n int) limit.Budget { return limit.Budget{Tokens: n, Period: limit.Period(time.Hour)} }

// TestReservationIsBoundedByTheModelsOutput: however long an answer the client allows, no more is reserved than the model can write.
func TestReservationIsBoundedByTheModelsOutput(t *testing.T) {
	var o overheard
	r := pricedRig(t, &o, fakeupstream.Options{}, func(t *proxy.Tenant) {
		t.Limits.Budget = limit.Budget{Tokens: 1e9, USD: 1e6, Period: limit.Period(time.Hour)}
	})
	if resp, text := r.ask(strings.Replace(messages(say("user", "Hello.")), "{", `{"max_tokens":999999999999999999,`, 1)); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if len(o.charges) != 2 {
		t.Fatalf("%d charges", len(o.charges))
	}
	for _, c := range o.charges {
		if c.Room < 1000 || c.Room > 16*1000 {
			t.Errorf("%s holds %d", c.Name, c.Room)
		}
	}
}

// TestReservationCoversAllChoices: a request for several answers reserves all of them.
func TestReservationCoversAllChoices(t *testing.T) {
	var o overheard
	r := pricedRig(t, &o, fakeupstream.Options{}, func(t *proxy.Tenant) { t.Limits.Budget = inTokens(1e9) })
	for _, n := range []string{"1", "null", "5", "999999999999999999"} {
		r.ask(strings.Replace(messages(say("user", "Hello.")), "{", `{"max_tokens":100,"n":`+n+`,`, 1))
	}
	var got []int64
	for _, c := range o.charges {
		got = append(got, (c.Room-c.Amount/4)/100)
	}
	if want := []int64{1, 1, 5, 128}; !slices.Equal(got, want) {
		t.Errorf("the charges have room for %d answers, want %d", got, want)
	}
}

// TestReservationWithoutAnAnswerIsSettled: a reservation that the store made without answering is settled with the answer.
func TestReservationWithoutAnAnswerIsSettled(t *testing.T) {
	o := overheard{fails: session.ErrUnavailable}
	r := pricedRig(t, &o, fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "ok", Usage: &fakeupstream.Usage{Prompt: 100, Completion: 10}}
	}}, func(t *proxy.Tenant) { t.Limits.Budget = inTokens(1e6) })
	r.atEnd(`dewpoint_store_losses_total{op="budget"}`, 1)
	if resp, text := r.ask(messages(say("user", "Hello."))); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	wantSpent(t, &o, 110)
}

// TestHiddenCallsAreCompared: the holdout gets a price for an answer that took several calls upstream.
func TestHiddenCallsAreCompared(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			var o overheard
			r := pricedRig(t, &o, fakeupstream.Options{Strict: true}, func(t *proxy.Tenant) {
				t.Hidden, t.Holdout.Share = engine.Hidden{Request: true}, 1e-12
			})
			a := &agent{rig: r, streams: streams, history: []string{say("system", "You run tools.")}}
			a.up.Script(fakeupstream.Answer{Content: "I ask.", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "a")}}, fakeupstream.Answer{Content: "Mended."})
			got := a.step(say("user", "Mend the roof."))
			want := int64(got.Usage.Prompt)*3000 + int64(got.Usage.Completion)*15_000
			for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				o.mu.Lock()
				n, total := len(o.entries), session.Sums{}
				for _, e := range o.entries {
					total.Add(e.Sums)
				}
				o.mu.Unlock()
				if n > 0 {
					if len(a.steps()) != 2 || total != (session.Sums{Sessions: 1, Steps: 1, Nano: want}) {
						t.Errorf("%d requests of upstream, entered %+v, want %d", len(a.steps()), total, want)
					}
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("nothing was entered")
				}
			}
		})
	}
}

// TestHiddenCallsAreCharged: each answer after a hidden call is reserved, charged and settled like that of a request, and refused if the
// budget is spent.
func TestHiddenCallsAreCharged(t *testing.T) {
	for name, c := range map[string]struct {
		limits limit.Tenant
		code   string // of the refusal; empty: none
	}{
		"enough": {limit.Tenant{Budget: inTokens(1e6)}, ""},
		"spent":  {limit.Tenant{Budget: inTokens(900)}, "budget_spent"},
		"minute": {limit.Tenant{Tokens: 900}, "tokens_per_minute_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, streams bool) {
				var o overheard
				a := &agent{streams: streams, history: []string{say("system", "You run tools.")}}
				a.rig = pricedRig(t, &o, fakeupstream.Options{Strict: true}, func(t *proxy.Tenant) {
					t.Hidden, t.Limits = engine.Hidden{Request: true}, c.limits
				})
				a.up.Script(
					fakeupstream.Answer{Content: "I ask. ", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "a")}, Usage: &fakeupstream.Usage{Prompt: 1000, Completion: 10}},
					fakeupstream.Answer{Content: "Mended.", Usage: &fakeupstream.Usage{Prompt: 2000, Completion: 20}},
				)
				if c.code == "" {
					a.step(say("user", "Mend the roof."))
					wantSpent(t, &o, 3030)
					return
				}
				resp := a.post(a.body(say("user", "Mend the roof.")))
				text, _ := io.ReadAll(resp.Body) // a stream breaks off behind the error
				if !strings.Contains(string(text), `"code":"`+c.code+`"`) || (resp.StatusCode == http.StatusTooManyRequests) == streams {
					t.Errorf("%s %s", resp.Status, text)
				}
				if n := len(a.steps()); n != 1 {
					t.Errorf("upstream was asked %d times", n)
				}
				a.up.Script()
				if len(o.charges) > 0 {
					wantSpent(t, &o, 1010)
				}
			})
		})
	}
}

// TestCompactionsAreCharged: all that upstream bills for a compaction is charged, whether or not it becomes one.
func TestCompactionsAreCharged(t *testing.T) {
	for name, stops := range map[string][]string{ // "": upstream refuses
		"refused":            {"", "end_turn"},
		"another answer":     {"end_turn", "end_turn"},
		"cut off by window":  {"", "model_context_window_exceeded", "end_turn"},
		"cut off, every try": {"", "model_context_window_exceeded", "model_context_window_exceeded", "model_context_window_exceeded", "model_context_window_exceeded"},
		"no record":          {"", "max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, billed := 0, 0
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				stop := stops[min(asked, len(stops)-1)]
				asked++
				if stop == "" {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"compaction: not permitted"}}`)
					return
				}
				billed += len(body)/4 + 7
				_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"CURRENT_STATE: stage 7 fails."}],`+
					`"stop_reason":%q,"usage":{"input_tokens":%d,"output_tokens":7}}`, stop, len(body)/4)
			}))
			defer up.Close()
			var o overheard
			r := newRig(t, setup{
				base: up.URL + "/v1", dialect: messagesapi.New(split.Options{}),
				store:   func(s session.Store) session.Store { o.Store = s; return &o },
				tenants: one(func(t *proxy.Tenant) { t.Limits.Budget, t.Condenser = inTokens(1e6), condense.ConversationWindow{} }),
			})
			resp, answer := r.ask(`{"max_tokens":100,"compaction":{"type":"summarize"},` + messages(turns("ships", 40)[1:]...)[1:])
			if resp.StatusCode != http.StatusOK || asked > len(stops) || asked < min(len(stops), 3) {
				t.Fatalf("%d after %d requests: %s", resp.StatusCode, asked, answer)
			}
			wantSpent(t, &o, int64(billed))
		})
	}
}

// TestCutAnswersAreCharged: what a model had written of an answer that was cut off is charged, whatever upstream had reported by then. So is
// what is not text: reasoning, and further choices.
func TestCutAnswersAreCharged(t *testing.T) {
	words := strings.Repeat("words and ", 400)
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		events  string
		prompt  int64 // as reported; 0: not reported
		output  int64
	}{
		"messages": {messagesapi.New(split.Options{}), `data: {"type":"message_start","message":{"usage":{"input_tokens":50,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + words + `"}}` + "\n\n", 50, 1000},
		"messages, thinking": {messagesapi.New(split.Options{}), `data: {"type":"message_start","message":{"usage":{"input_tokens":50,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + words + `"}}` + "\n\n", 50, 1000},
		"responses":       {responses.New(split.Options{}), `data: {"type":"response.output_text.delta","output_index":0,"delta":"` + words + `"}` + "\n\n", 0, 1000},
		"chat":            {chat.New(chat.Options{}), `data: {"choices":[{"index":0,"delta":{"content":"` + words + `"}}]}` + "\n\n", 0, 1000},
		"chat, reasoning": {chat.New(chat.Options{}), `data: {"choices":[{"index":0,"delta":{"reasoning_content":"` + words + `"}}]}` + "\n\n", 0, 1000},
		"chat, choices": {chat.New(chat.Options{}), `data: {"choices":[{"index":0,"delta":{"content":"` + words + `"}}]}` + "\n\n" +
			`data: {"choices":[{"index":1,"delta":{"content":"` + words + `"}}]}` + "\n\n", 0, 2000},
		"chat, with the message so far": {chat.New(chat.Options{}),
			`data: {"choices":[{"index":0,"delta":{"content":"` + words + `"},"message":{"content":"` + words + `"}}]}` + "\n\n", 0, 1000},
		"chat, long": {chat.New(chat.Options{}), strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":"`+words+`"}}]}`+"\n\n", 100), 0, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.events)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}))
			defer up.Close()
			var o overheard
			r := newRig(t, setup{
				base: up.URL + "/v1", dialect: c.dialect,
				store:   func(s session.Store) session.Store { o.Store = s; return &o },
				tenants: one(func(t *proxy.Tenant) { t.Limits.Budget = inTokens(1e6) }),
			})
			body := messages(say("user", "Hello."))
			if c.dialect.Name() == "responses" {
				body = strings.Replace(body, `"messages"`, `"input"`, 1)
			}
			resp := r.post(strings.Replace(body, "{", `{"stream":true,"max_tokens":9000,`, 1))
			_, _ = io.ReadAll(resp.Body)
			wantSpent(t, &o, cmp.Or(c.prompt, o.charges[0].Amount)+c.output)
		})
	}
}

// TestUnreadBodiesAreCharged: a body that is no conversation, but which upstream serves, is charged in dollars by its model's price.
func TestUnreadBodiesAreCharged(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1000,"output_tokens":100}}`)
	}))
	defer up.Close()
	var o overheard
	r := newRig(t, setup{
		base: up.URL + "/v1", dialect: responses.New(split.Options{}),
		store:   func(s session.Store) session.Store { o.Store = s; return &o },
		tenants: one(func(t *proxy.Tenant) { t.Limits.Budget = limit.Budget{USD: 1, Period: limit.Period(time.Hour)} }),
		models:  func(string) proxy.ModelInfo { return proxy.ModelInfo{Price: model.Price{Input: 3, Output: 15}} },
	})
	if resp, text := r.ask(`{"model":"priced","prompt":{"id":"pmpt_1"}}`); resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Unread") != "unsupported" {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if len(o.charges) != 1 {
		t.Fatalf("%d charges", len(o.charges))
	}
	wantSpent(t, &o, 1000*3+100*15)
}

// wantSpent waits until so much of a budget is spent and nothing is reserved.
func wantSpent(t *testing.T, o *overheard, tokens int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got, err := o.Store.Reserve(t.Context(), "", o.charges[:1])
		must(t, err)
		if got.Balances[0] == (session.Balance{Spent: tokens}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the account has %+v, want %d", got.Balances[0], tokens)
		}
	}
}

// balanced is a store in which a budget has a balance.
type balanced struct {
	session.Store
	session.Balance
}

func (b balanced) Reserve(_ context.Context, _ string, charges []session.Charge) (got session.Reserved, err error) {
	for range charges {
		got.Balances = append(got.Balances, b.Balance)
	}
	return got, nil
}

// TestLowBudgetsCondenseHarder: when at most a fifth of a budget is left, what requests under way may cost included, histories are condensed to a tenth of
// what is left, but not below 8000 tokens.
func TestLowBudgetsCondenseHarder(t *testing.T) {
	quick.Skip(t)
	tokens, usd := limit.Budget{Tokens: 1_000_000, Period: limit.Period(time.Hour), Then: limit.Condense}, limit.Budget{USD: 3, Period: limit.Period(time.Hour), Then: limit.Condense}
	refuses := tokens
	refuses.Then = limit.Refuse
	for name, c := range map[string]struct {
		budget  limit.Budget
		balance session.Balance
		prompt  int // tokens
		saves   bool
	}{
		"a fifth is left":                  {tokens, session.Balance{Spent: 800_000}, 20_100, true},
		"more than a fifth":                {tokens, session.Balance{Spent: 799_999}, 20_100, false},
		"a fifth and what is under way":    {tokens, session.Balance{Spent: 700_000, Held: 100_000}, 20_100, true},
		"a tenth of the rest":              {tokens, session.Balance{Spent: 800_000}, 19_900, false},
		"nothing is left":                  {tokens, session.Balance{Spent: 1_000_000}, 20_100, false},
		"very little is left":              {tokens, session.Balance{Spent: 999_999}, 8_100, true},
		"enough for a task":                {tokens, session.Balance{Spent: 999_999}, 7_900, false},
		"the price of a tenth, in dollars": {usd, session.Balance{Spent: 2_400_000}, 20_100, true},
		"no more than a tenth, in dollars": {usd, session.Balance{Spent: 2_400_000}, 19_900, false},
		"a budget that only refuses":       {refuses, session.Balance{Spent: 800_000}, 20_100, false},
	} {
		r := newRig(t, setup{
			store: func(s session.Store) session.Store { return balanced{s, c.balance} },
			tenants: one(func(t *proxy.Tenant) {
				t.Condenser, t.Limits.Budget = condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 1000, KeepFirst: 1}}, c.budget
			}),
			models: func(name string) proxy.ModelInfo {
				return proxy.ModelInfo{Model: engine.Model{Name: name, MaxOutput: 1000}, Price: model.Price{Input: 3, Output: 15}}
			},
		})
		var said []string
		for i := range 101 { // of a hundredth of the prompt each, with 4 tokens for each message
			said = append(said, say([]string{"user", "assistant"}[i%2], strings.Repeat("four", c.prompt/101-4)))
		}
		resp, text := r.ask(messages(said...))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, text)
		}
		if saves := resp.Header.Get("X-Dewpoint-Condensed") != ""; saves != c.saves {
			t.Errorf("%s: the history was condensed: %t", name, saves)
		}
	}
}
