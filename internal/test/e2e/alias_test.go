package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// TestSummariserBehindAnAlias: a summariser behind a name that says nothing, on a server that refuses a part of the usual call, writes
// summaries. It is refused once. The request's own model is asked with the client's own parameter, and is refused never.
func TestSummariserBehindAnAlias(t *testing.T) {
	t.Parallel()
	const words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
	for name, c := range map[string]struct {
		model   string // of the summariser; empty: the request's own
		refusal string
		bad     string // what the server refuses in a body
		refused int64
	}{
		"limit":        {"prod-small", words, `"max_tokens"`, 1},
		"own model":    {"", words, `"max_tokens"`, 0},
		"system role":  {"prod-small", "System role not supported", `"role":"system"`, 1},
		"two refusals": {"prod-small", "stream and max_tokens: unknown fields", `"stream":true`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int64
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := string(readAll(t, r))
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(body, c.bad) {
					refused.Add(1)
					w.WriteHeader(http.StatusBadRequest)
					_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","code":"unsupported_parameter"}}`, c.refusal)
					return
				}
				_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+
					`"content":"USER_CONTEXT: Port the parser.\nCURRENT_STATE: reading the files"},"finish_reason":"stop"}]}`)
			}))
			t.Cleanup(up.Close)
			llm := ""
			if c.model != "" {
				llm = "llm_config: alias, "
			}
			p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {alias: {model: prod-small}}
condenser: {type: llm, %smax_size: 12, min_tokens: 0, trigger: limits, wait: deadline, deadline: 1m, background_at: 0}
`, up.URL+"/v1", embedded(newStore(t)), llm)))
			history := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Port the parser."})}
			var outcomes []string
			for n := range 20 {
				history = append(history, encode(map[string]string{"role": "assistant", "content": fmt.Sprint("Reading file ", n, strings.Repeat(" line by line", 60))}),
					encode(map[string]string{"role": "user", "content": "And the next?"}))
				a := send(t, p, encode(map[string]any{"model": judge.Model, "max_completion_tokens": 500, "messages": history}))
				_, err := a.rest()
				ok(t, err)
				outcomes = append(outcomes, a.Header.Get("X-Dewpoint-Condensed")+a.Header.Get("X-Dewpoint-Condense-Failed"))
			}
			if !slices.ContainsFunc(outcomes, func(s string) bool { return strings.HasSuffix(s, "summary") }) || refused.Load() != c.refused {
				t.Errorf("%d calls refused: %q", refused.Load(), outcomes)
			}
		})
	}
}
