package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// billedModel is the agents' model. Its prices have as many digits as any.
const billedModel = "billed-model"

// billPrices are those of billedModel and of the summariser, in trillionths of a dollar for a token: input, cached, output.
var billPrices = map[string][3]int64{billedModel: {1_250_000, 125_000, 10_000_000}, judge.Summariser: {37_500, 18_750, 150_000}}

const billModels = `
models:
  ` + billedModel + `: {context_window: 200000, max_output: 8000, price: {input: 1.25, cached_input: 0.125, cache_write: 1.25, output: 10}}
  ` + judge.Summariser + `: {context_window: 200000, max_output: 8000, price: {input: 0.0375, cached_input: 0.01875, cache_write: 0.0375, output: 0.15}}
`

// invoice returns what upstream charges for the requests that it has answered, in trillionths of a dollar.
func invoice(t *testing.T, requests []fakeupstream.Request) (total int64) {
	t.Helper()
	for _, r := range requests {
		if r.Status != http.StatusOK || r.PromptTokens == 0 {
			t.Fatalf("request %d: status %d, %d tokens, %v", r.Index, r.Status, r.PromptTokens, r.Refused)
		}
		price := billPrices[r.Model]
		total += price[0]*int64(r.PromptTokens-r.CachedTokens) + price[1]*int64(r.CachedTokens) + price[2]*int64(r.CompletionTokens)
	}
	return total
}

// billBody returns a step of a conversation with n messages in a protocol.
func billBody(protocol string, n int, stream bool) (path string, body any) {
	var messages []any
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, map[string]string{"role": role, "content": fmt.Sprintf("%s %d of the ledger: %s", role, i, strings.Repeat("some more of it, ", 30))})
	}
	all := map[string]any{"model": billedModel, "stream": stream}
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	tool := map[string]any{"name": "look", "description": "Looks.", "parameters": schema}
	switch protocol {
	case "messages":
		all["messages"], all["max_tokens"] = messages, 500
		all["tools"] = []any{map[string]any{"name": "look", "description": "Looks.", "input_schema": schema}}
		return "/v1/messages", all
	case "responses":
		all["input"], all["store"] = messages, false
		tool["type"] = "function"
		all["tools"] = []any{tool}
		return "/v1/responses", all
	}
	all["messages"] = messages
	all["tools"] = []any{map[string]any{"type": "function", "function": tool}}
	if stream {
		all["stream_options"] = map[string]bool{"include_usage": true}
	}
	return "/v1/chat/completions", all
}

// billed is a report of savings.
type billed struct {
	Total struct {
		Requests, Steps, Condensations, Reckoned int64
		Own                                      struct{ Calls int64 } `json:"own_calls"`
		USD                                      struct{ Bill, Without, Saved json.Number }
	}
	Rows []struct{ Model, Agent string }
}

// TestTheBillIsUpstreams: in all protocols, streamed or not, with summaries and calls of hidden tools, the savings that the program reports contain
// exactly what upstream charged for. They are still there after a restart, and the same at the command line.
func TestTheBillIsUpstreams(t *testing.T) {
	for _, protocol := range []string{"chat", "messages", "responses"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			file := s.writeWith(t, embedded(newStore(t)),
				"llm_config: cheap, trigger: limits, max_size: 10, recall: true, wait: deadline, deadline: 1m, background_at: 0, min_tokens: 0", billModels)
			p := serve(t, "--config", file)
			steps := 0
			for n := 1; n <= 25; n += 2 {
				if n == 19 { // the model calls a tool that the client does not see
					s.Upstream.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_recall_1", Name: "recall", Arguments: `{"query":"ledger"}`}}})
				}
				path, body := billBody(protocol, n, n%4 == 1)
				text, err := json.Marshal(body)
				ok(t, err)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Addr+path, bytes.NewReader(text))
				ok(t, err)
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("User-Agent", "claude-cli/2.1.104 (external, cli)")
				req.Header.Set("Anthropic-Version", "2023-06-01")
				req.Header.Set("X-Api-Key", "sk-test")
				resp, err := http.DefaultClient.Do(req)
				ok(t, err)
				answer, err := io.ReadAll(resp.Body)
				ok(t, err)
				ok(t, resp.Body.Close())
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("step %d: %s %s", n, resp.Status, answer)
				}
				steps++
			}
			requests := s.Upstream.Requests()
			want := invoice(t, requests)
			check := func(text string) {
				t.Helper()
				var got billed
				ok(t, json.Unmarshal([]byte(text), &got))
				bill, valid := new(big.Rat).SetString(got.Total.USD.Bill.String())
				if !valid || bill.Cmp(big.NewRat(want, 1_000_000_000_000)) != 0 {
					t.Errorf("the bill is %s USD, upstream's invoice %d trillionths", got.Total.USD.Bill, want)
				}
				if got.Total.Steps != int64(steps) || got.Total.Condensations == 0 || got.Total.Own.Calls == 0 || got.Total.Reckoned != 0 {
					t.Errorf("%d steps were made, and the report is %s", steps, text)
				}
				if len(requests) <= steps+int(got.Total.Own.Calls) {
					t.Errorf("no hidden call was answered: %d requests upstream, %d steps, %d calls of our own", len(requests), steps, got.Total.Own.Calls)
				}
				if len(got.Rows) == 0 || got.Rows[0].Agent != "claude-cli" {
					t.Errorf("the client is not named: %s", text)
				}
			}
			resp, err := http.Get("http://" + p.Admin + "/api/v1/savings?since=1d&by=model,agent")
			ok(t, err)
			text, err := io.ReadAll(resp.Body)
			ok(t, err)
			ok(t, resp.Body.Close())
			check(string(text))

			p.terminate()
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			c := command(t, "savings", "--config", file, "--admin", p.Admin, "--by", "model,agent", "--since", "1d", "--json")
			if c.Code != 0 {
				t.Fatalf("savings: %d %s", c.Code, c.Err)
			}
			check(c.Out)
			table := command(t, "savings", "--config", file, "--admin", p.Admin, "--by", "model")
			if !strings.Contains(table.Out, "The bill is $") || !strings.Contains(table.Out, billedModel) || table.Code != 0 {
				t.Errorf("%d %s%s", table.Code, table.Out, table.Err)
			}
		})
	}
}
