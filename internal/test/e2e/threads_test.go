package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestThreadsOfTheMessagesAPI: with "thread", the default of the tool runner in Anthropic's SDK, upstream stores the history, and a request has
// only the new messages. All are logged in one session, even after a restart. Upstream's usage, which includes the messages that it stores,
// does not change how later requests are counted.
func TestThreadsOfTheMessagesAPI(t *testing.T) {
	t.Parallel()
	answers := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r) // requests for the model's context window
			return
		}
		answers++
		id, call := fmt.Sprintf("msg_%d", answers), fmt.Sprintf("toolu_thread_%06d", answers)
		usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":9}`, 600*answers)
		var asked struct{ Stream bool }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !asked.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"I look."},
				{"type":"tool_use","id":%q,"name":"run","input":{"command":"make"}}],"stop_reason":"tool_use",%s}`, id, call, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[],%s}}`, id, usage),
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look."}}`,
			`{"type":"content_block_stop","index":0}`,
			fmt.Sprintf(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":%q,"name":"run","input":{}}}`, call),
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"make\"}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
			`{"type":"message_stop"}`,
		} {
			fmt.Fprintf(w, "event: x\ndata: %s\n\n", event)
		}
	}))
	t.Cleanup(upstream.Close)
	s := newSetting(t, fakeupstream.Options{})
	s.url = upstream.URL + "/v1"
	config := s.config(t, embedded(newStore(t)))
	p := serve(t, "--config", config)
	send := func(messages, thread string, streamed bool) http.Header {
		t.Helper()
		body := fmt.Sprintf(`{"model":"claude-x","max_tokens":400,"stream":%t,"messages":[%s],"thread":%s}`, streamed, messages, thread)
		a := sendTo(t, p, "/messages", []byte(body), http.Header{"Anthropic-Beta": {"message-threads-2026-08-01"}})
		_, err := io.ReadAll(a.Body)
		ok(t, err)
		return a.Header
	}
	text := strings.Repeat("a line of what it printed, and one more. ", 60)
	first := send(`{"role":"user","content":"`+text+`"}`, `{"type":"create"}`, false)
	for i := 1; i < 8; i++ {
		if i == 1 || i == 4 {
			p.terminate()
			p.wait()
			p = serve(t, "--config", config)
		}
		h := send(fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_thread_%06d","content":%q}]}`, i, text),
			fmt.Sprintf(`{"type":"continue","previous_message_id":"msg_%d"}`, i), i%2 == 0)
		if h.Get("X-Dewpoint-Session") != first.Get("X-Dewpoint-Session") || h.Get("X-Dewpoint-Thread") != first.Get("X-Dewpoint-Thread") {
			t.Errorf("request %d is in thread %s of session %s, not %s of %s", i, h.Get("X-Dewpoint-Thread"), h.Get("X-Dewpoint-Session"),
				first.Get("X-Dewpoint-Thread"), first.Get("X-Dewpoint-Session"))
		}
	}
	want := []string{"user", "answer"}
	for range 7 {
		want = append(want, "action", "observation")
	}
	if got := p.logged(first.Get("X-Dewpoint-Session"), first.Get("X-Dewpoint-Thread")); !slices.Equal(got, append(want, "action")) {
		t.Errorf("logged %v", got)
	}
	other := send(`{"role":"user","content":"`+text+`x"}`, "null", false)
	if before, after := first.Get("X-Dewpoint-Tokens"), other.Get("X-Dewpoint-Tokens"); before != after {
		t.Errorf("the same text counted %s tokens before and %s after the thread", before, after)
	}
}
