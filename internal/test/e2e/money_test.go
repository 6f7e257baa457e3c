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
	"time"
)

// refusing returns an upstream that accepts one key for conversations, and requires none elsewhere.
func refusing(t *testing.T, key string) string {
	t.Helper()
	return stub(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nothing") {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/completions") && r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"wrong key","type":"invalid_request_error","code":"invalid_api_key"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"fine"}}]}`)
	})
}

// paid is a model that costs money: it counts its calls.
func paid(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	calls := &atomic.Int64{}
	return stub(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		text := encode("USER_CONTEXT: a parcel tracker.\nTASK_TRACKING: none.\nCOMPLETED: " + strings.Repeat("some of it, ", 10))
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],`+
			`"usage":{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050}}`, text)
	}), calls
}

func stub(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// spend sends a conversation of n messages with a key, and returns the status.
func spend(t *testing.T, p *process, key, topic string, n int) int {
	t.Helper()
	messages := make([]json.RawMessage, n)
	for i := range messages {
		messages[i] = encode(map[string]string{
			"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("%s %d: %s", topic, i, strings.Repeat("more of it ", 60)),
		})
	}
	req, a := post(t, p, body(messages))
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("X-Dewpoint-Condense", "now")
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	ok(t, err)
	ok(t, resp.Body.Close())
	return resp.StatusCode
}

// free sends a request that upstream answers without checking a key.
func free(t *testing.T, p *process, key string) {
	t.Helper()
	for path, method := range map[string]string{
		"/v1/nothing": http.MethodGet, "/v1/models": http.MethodGet, "/v1/messages/count_tokens": http.MethodPost,
	} {
		req, a := post(t, p, body([]json.RawMessage{spoken(0)}))
		req.Method, req.URL.Path = method, path
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := a.client.RoundTrip(req)
		ok(t, err)
		ok(t, resp.Body.Close())
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusBadRequest {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

const moneyConfig = `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: {type: embedded, path: %q, timeout: 1m}
llms: {cheap: {model: cheap, base_url: %q, api_key: sk-operator}}
condenser: {type: llm, llm_config: cheap, wait: deadline, deadline: 1m, background_at: 0, max_size: 10, min_tokens: 0}
limits: {tenant: {%s}}
`

// TestBogusKeysCostNothing: the operator's key never pays for a client whose key upstream has not accepted, and the log warns about this
// configuration at startup.
func TestBogusKeysCostNothing(t *testing.T) {
	model, calls := paid(t)
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(moneyConfig, refusing(t, "sk-good"), newStore(t), model, ""))
	p := serve(t, "--config", file)
	if !strings.Contains(p.log.String(), "llms.cheap.api_key") {
		t.Error("nothing warned at the start")
	}
	for n := range 20 {
		free(t, p, fmt.Sprint("sk-bogus-", n))
		if status := spend(t, p, fmt.Sprint("sk-bogus-", n), "bogus", 14); status != http.StatusUnauthorized {
			t.Errorf("status %d", status)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls were paid for bogus keys", n)
	}
	for n := 12; n < 18; n += 2 {
		if status := spend(t, p, "sk-good", "good", n); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	for end := time.Now().Add(patience); calls.Load() == 0; time.Sleep(time.Millisecond) { // it may be made in the background
		if time.Now().After(end) {
			t.Fatal("nothing is summarised for a key that upstream has accepted")
		}
	}
}

// TestSummariesHaveLimits: a tenant's summaries, and their tokens, have separate limits.
func TestSummariesHaveLimits(t *testing.T) {
	for limit, most := range map[string]int64{"summaries_per_minute: 3": 3, "summary_tokens_per_minute: 2000": 2} {
		model, calls := paid(t)
		file := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(moneyConfig, refusing(t, "sk-good"), newStore(t), model, limit))
		p := serve(t, "--config", file)
		for n := range 10 {
			if status := spend(t, p, "sk-good", fmt.Sprint("topic ", n), 14); status != http.StatusOK {
				t.Errorf("%s: status %d", limit, status)
			}
		}
		if n := calls.Load(); n == 0 || n > most {
			t.Errorf("%s: %d calls", limit, n)
		}
	}
}
