package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// send posts the history with additional members, and returns the answer.
func (c *coder) send(more string) string {
	c.t.Helper()
	body := fmt.Sprintf(`{"model":"claude-x","max_tokens":400,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],%s"messages":[%s]}`,
		more, strings.Join(c.elements, ","))
	text, err := sendTo(c.t, c.proxy, "/messages", []byte(body)).rest()
	ok(c.t, err)
	return text
}

// compact requests a compaction of the history, and returns the resulting block.
func (c *coder) compact(streamed bool) (block string) {
	c.t.Helper()
	text := c.send(fmt.Sprintf(`"stream":%t,"compaction":{"type":"summarize"},`, streamed))
	if streamed {
		_, delta, found := strings.Cut(text, `"delta":{"type":"compaction_delta",`)
		delta, _, closed := strings.Cut(delta, "}}\n")
		if !found || !closed || !strings.Contains(text, `"stop_reason":"compaction"`) || !strings.Contains(text, "event: message_stop") {
			c.t.Fatalf("got %s", text)
		}
		return `{"type":"compaction",` + delta + "}"
	}
	var m struct {
		Content []json.RawMessage
		Stop    string `json:"stop_reason"`
		Usage   struct {
			Input int `json:"input_tokens"`
		}
	}
	ok(c.t, json.Unmarshal([]byte(text), &m))
	if len(m.Content) != 1 || m.Stop != "compaction" || m.Usage.Input == 0 {
		c.t.Fatalf("got %s", text)
	}
	return string(m.Content[0])
}

// TestMessagesCompaction: in the Messages API too, a client that requests a compaction gets a block with a record if upstream
// does not support compaction, and upstream's own block if it does.
func TestMessagesCompaction(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]bool{"upstream compacts": true, "the proxy compacts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
				if asksForRecord(r) {
					return fakeupstream.Answer{Content: "CURRENT_STATE: the build fails in stage 7."}
				}
				return fakeupstream.Answer{Content: "Understood."}
			}})
			if !knows {
				s.Upstream.RefuseCompaction()
			}
			c := newCoder(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 8)))
			for round, streamed := range []bool{false, true, false} {
				for n := range 4 {
					c.work(10*round+n, 20)
					c.send("")
				}
				block := c.compact(streamed)
				asked := string(lastBody(s.Upstream))
				for n := range 4 {
					if step := fmt.Sprintf("Step %d.", 10*round+n); !strings.Contains(asked, step) {
						t.Errorf("round %d: %q is not in what was compacted: %s", round, step, asked)
					}
				}
				c.elements = append(c.elements, `{"role":"assistant","content":[`+block+`,{"type":"text","text":"So far."}]}`,
					`{"role":"user","content":[{"type":"text","text":"Go on with it."}]}`)
				c.send("")
				requests := s.Upstream.Requests()
				last := requests[len(requests)-1]
				if !knows && (len(last.Messages) != 3 || strings.Contains(string(last.Body), "Step 1.") || strings.Contains(string(last.Body), "dewpoint.1.")) {
					t.Errorf("round %d: %d messages were forwarded: %s", round, len(last.Messages), last.Body)
				}
				want := "fails in stage 7"
				if knows { // upstream ignores what its block replaces
					want = `"messages":[` + strings.Join(c.elements, ",") + "]"
				}
				if !strings.Contains(string(last.Body), want) {
					t.Errorf("round %d: forwarded %s", round, last.Body)
				}
			}
			refused, records := 0, 0
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					refused++
				}
				if asksForRecord(&r) {
					records++
				}
			}
			if knows && refused+records > 0 || !knows && (refused != 1 || records != 3) {
				t.Errorf("%d requests were refused, %d asked for a record", refused, records)
			}
		})
	}
}

// TestContextManagement: once upstream is known not to manage histories, requests for it are removed, and a limit for compactions
// becomes one for condensations. If upstream does, the request is forwarded unchanged.
func TestContextManagement(t *testing.T) {
	t.Parallel()
	const wish = `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},{"type":"compact_20260112","trigger":{"type":"input_tokens","value":2000}}]},`
	for name, knows := range map[string]bool{"upstream manages": true, "the proxy manages": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			if !knows {
				s.Upstream.RefuseCompaction()
			}
			c := newCoder(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000)))
			blocks := 0
			for n := range 20 {
				c.work(n, 20)
				if strings.Contains(c.send(wish), `"type":"compaction"`) {
					blocks++
				}
			}
			refused, most, summaries := 0, 0, 0
			for _, r := range s.Upstream.Requests() {
				switch {
				case r.Refused != nil:
					refused++
				case r.Summary:
					summaries++
				default:
					most = max(most, r.PromptTokens)
				}
				if r.Refused == nil && !r.Summary && strings.Contains(string(r.Body), "context_management") != knows {
					t.Errorf("forwarded %.300s", r.Body)
				}
			}
			t.Logf("%d refused, %d summaries, %d blocks, at most %d tokens", refused, summaries, blocks, most)
			if knows && (refused+summaries > 0 || blocks == 0) || !knows && (refused != 1 || summaries == 0 || blocks > 0 || most > 2500) {
				t.Errorf("%d refused, %d summaries, %d blocks, at most %d tokens", refused, summaries, blocks, most)
			}
		})
	}
}

// TestMalformedOptionAffectsOneClient: upstream refuses one client's malformed context_management. From then on the option is removed from this
// client's requests, but not from those of others, until a second client is refused as well.
func TestMalformedOptionAffectsOneClient(t *testing.T) {
	t.Parallel()
	const wish, malformed = `"context_management":{"edits":[]}`, `"context_management":{"edits":"all"}`
	var got atomic.Value // the newest body that upstream accepted
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := string(readAll(t, r))
		if strings.Contains(body, malformed) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"context_management.edits: Input should be a valid list"}}`))
			return
		}
		if r.Method == http.MethodPost { // Dewpoint also asks for the window of the model
			got.Store(body)
		}
		_, _ = w.Write([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Yes."}],
			"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}`))
	}))
	t.Cleanup(up.Close)
	p := serve(t, "--upstream", up.URL+"/v1", "--config", newSetting(t, fakeupstream.Options{}).configAt(t, embedded(newStore(t)), 1000))
	ask := func(key, with string, forwarded bool, more ...http.Header) {
		t.Helper()
		a := sendTo(t, p, "/messages", []byte(`{"model":"claude-x","max_tokens":9,`+with+`,"messages":[{"role":"user","content":"Is it `+rand.Text()+`?"}]}`),
			append(more, http.Header{"X-Api-Key": {key}, "Anthropic-Version": {"2023-06-01"}})...)
		text, err := a.rest()
		ok(t, err)
		if body := got.Load().(string); a.StatusCode != http.StatusOK || strings.Contains(body, "context_management") != forwarded {
			t.Errorf("%s: %d %s, forwarded %s", key, a.StatusCode, text, body)
		}
	}
	ask("sk-b", wish, true)
	ask("sk-a", malformed, false)
	ask("sk-a", wish, false)
	ask("sk-b", wish, true)
	for _, name := range []string{"X-Goog-Api-Key", "Api-Key", "Authorization"} { // the same client, with one more key
		ask("sk-a", malformed, false, http.Header{name: {"Bearer x"}})
		ask("sk-a", malformed, false, http.Header{name: {"Bearer y"}})
		ask("sk-b", wish, true)
	}
	ask("sk-c", malformed, false)
	ask("sk-b", wish, false)
}
