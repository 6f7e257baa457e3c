package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestUnknownOverflows: an upstream's refusal of a long request, in words that no table has, is relieved, and later requests are not refused
// again. An error about something else reaches the client after one call, and so does an overflow that a short request cannot be.
func TestUnknownOverflows(t *testing.T) {
	t.Parallel()
	const window = 5000 // tokens
	long := `{"error":{"message":"The conversation of PROMPT tokens has outgrown the WINDOW that fit."}}`
	for name, c := range map[string]struct {
		status   int
		body     string // PROMPT: the count of the request, WINDOW: its limit
		steps    int
		relieved bool
	}{
		"figures":          {400, long, 30, true},
		"words":            {422, `{"detail":[{"loc":["body","messages"],"msg":"the history is larger than this model's memory: PROMPT > WINDOW"}]}`, 30, true},
		"answer":           {200, long, 30, true},
		"no figures":       {413, `{"error":{"message":"The dialog does not fit into the context."}}`, 30, true},
		"a short request":  {400, `{"error":{"message":"The dialog does not fit into the context."}}`, 1, false},
		"other figures":    {400, `{"error":{"message":"The conversation has 900000 tokens, and 800000 fit."}}`, 30, false},
		"answer too long":  {400, `{"error":{"message":"max_new_tokens PROMPT exceeds the model's maximum of WINDOW"}}`, 30, false},
		"too many images":  {400, `{"error":{"message":"Too many images in the prompt: PROMPT > WINDOW"}}`, 30, false},
		"tokens in a rate": {400, `{"error":{"message":"PROMPT tokens are above the limit of WINDOW tokens per minute"}}`, 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := readAll(t, r)
				if r.Method != http.MethodPost {
					http.NotFound(w, r)
					return
				}
				calls.Add(1)
				w.Header().Set("Content-Type", "application/json")
				if tokens := len(body) / 4; tokens > window || c.steps == 1 {
					w.WriteHeader(c.status)
					_, _ = strings.NewReplacer("PROMPT", fmt.Sprint(tokens), "WINDOW", fmt.Sprint(window)).WriteString(w, c.body)
					return
				}
				_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
			}))
			t.Cleanup(up.Close)
			p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, max_size: 10000}
`, up.URL+"/v1", embedded(newStore(t)))))
			history := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Fix it."})}
			for n := range c.steps {
				history = append(history, encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Reading file%d.go: %s", n, strings.Repeat(fmt.Sprint("line ", n, " of it, "), 80))}),
					encode(map[string]string{"role": "user", "content": "And the next?"}))
			}
			ask := func() int {
				t.Helper()
				req, a := post(t, p, body(history))
				resp, err := a.client.RoundTrip(req)
				ok(t, err)
				text, err := io.ReadAll(resp.Body)
				ok(t, err)
				ok(t, resp.Body.Close())
				if answered := strings.Contains(string(text), "chat.completion"); answered != c.relieved {
					t.Errorf("%d %s", resp.StatusCode, text)
				}
				return int(calls.Swap(0))
			}
			if n := ask(); n > 4 || (n > 1) != c.relieved {
				t.Errorf("%d calls", n)
			}
			history = append(history, encode(map[string]string{"role": "assistant", "content": "Done."}), encode(map[string]string{"role": "user", "content": "Go on."}))
			if n := ask(); n != 1 {
				t.Errorf("%d calls for the next request", n)
			}
		})
	}
}
