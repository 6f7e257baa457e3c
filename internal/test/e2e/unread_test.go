package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// TestUnreadBodies: a request whose body upstream accepts and never reads ends with 504, in each protocol.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	var mu sync.Mutex
	var held []net.Conn // open, and never read
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			held = append(held, conn)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: "http://%s/v1"}
store: %s
limits: {upstream_response_header_timeout: 1s}
`, listener.Addr(), embedded(newStore(t)))))
	long := strings.Repeat("a", 8<<20) // more than the buffers of a socket hold
	for path, body := range map[string]string{
		"/chat/completions": `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`,
		"/messages":         `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}]}`,
		"/responses":        `{"model":"m","input":"` + long + `"}`,
	} {
		req, a := post(t, p, []byte(body))
		req.URL.Path = "/v1" + path
		resp, err := a.client.RoundTrip(req)
		ok(t, err)
		text, err := io.ReadAll(resp.Body)
		ok(t, err)
		ok(t, resp.Body.Close())
		if resp.StatusCode != http.StatusGatewayTimeout || !strings.Contains(string(text), "did not answer in time") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// TestPatienceWithSummariser: the limit for upstream's answers does not end a summariser's call that may take longer.
func TestPatienceWithSummariser(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second // upstream's limit; the summariser takes longer, which is what the test is about
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := string(readAll(t, r))
		if strings.Contains(body, `"model":"slow"`) {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(3 * wait):
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":"USER_CONTEXT: Port it.\nCURRENT_STATE: reading the files"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(up.Close)
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {s: {model: slow, timeout: 2m}}
condenser: {type: llm, llm_config: s, max_size: 8, min_tokens: 0, trigger: limits, wait: deadline, deadline: 2m, background_at: 0}
limits: {upstream_response_header_timeout: %s}
`, up.URL+"/v1", embedded(newStore(t)), wait)))
	var history []any
	for n := range 8 {
		history = append(history, map[string]string{"role": "user", "content": fmt.Sprint("Part ", n, strings.Repeat(" in full", 60))},
			map[string]string{"role": "assistant", "content": fmt.Sprint("It has a part ", n, strings.Repeat(" and so on", 60))})
	}
	history = append(history, map[string]string{"role": "user", "content": "Go on."})
	a := send(t, p, encode(map[string]any{"model": judge.Model, "messages": history}))
	_, err := a.rest()
	ok(t, err)
	if got := a.Header.Get("X-Dewpoint-Condensed"); !strings.HasSuffix(got, "summary") {
		t.Errorf("condensed %q, failed %q", got, a.Header.Get("X-Dewpoint-Condense-Failed"))
	}
}
